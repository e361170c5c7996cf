export const options = { stages: [{ duration: '1s' }] };
export default function () {
  console.log('ran');
}
