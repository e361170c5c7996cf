export const options = { scenarios: { a: {} } };
export default function () {
  console.log('ran');
}
