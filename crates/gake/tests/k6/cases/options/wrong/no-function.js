export const options = { scenarios: { a: { executor: 'shared-iterations', exec: 'gone' } } };
export default function () {
  console.log('ran');
}
