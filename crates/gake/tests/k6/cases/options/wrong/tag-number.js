export const options = { tags: { a: 1 } };
export default function () {
  console.log('ran');
}
