export const options = { scenarios: { a: { executor: 'constant-vus', vus: 0 } } };
export default function () {
  console.log('ran');
}
