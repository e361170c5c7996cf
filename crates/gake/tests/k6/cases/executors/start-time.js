import exec from 'k6/execution';
export const options = { scenarios: { a: { executor: 'shared-iterations', startTime: '300ms' }, b: { executor: 'shared-iterations' } } };
export default function () {
  console.log(exec.scenario.name);
}
