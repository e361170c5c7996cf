export const options = { duration: '5s', stages: [{ duration: '1s', target: 1 }] };
export default function () {
  console.log('ran');
}
