import exec from 'k6/execution';
export const options = { scenarios: { a: { executor: 'shared-iterations', vus: 3, iterations: 10 } } };
export default function () {
  console.log(exec.scenario.iterationInTest);
}
