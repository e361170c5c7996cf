export const options = { duration: 0 };
export default function () {
  console.log('ran');
}
