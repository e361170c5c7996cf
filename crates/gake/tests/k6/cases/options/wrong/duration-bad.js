export const options = { duration: '5 apples' };
export default function () {
  console.log('ran');
}
