export const options = { scenarios: { 'a b': { executor: 'shared-iterations' } } };
export default function () {
  console.log('ran');
}
