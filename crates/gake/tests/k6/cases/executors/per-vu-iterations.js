import exec from 'k6/execution';
export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 3, iterations: 4 } } };
export default function () {
  console.log(exec.vu.iterationInScenario);
}
