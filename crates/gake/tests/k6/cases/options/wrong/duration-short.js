export const options = { duration: '500ms' };
export default function () {
  console.log('ran');
}
