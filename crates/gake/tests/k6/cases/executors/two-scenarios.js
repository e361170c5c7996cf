import exec from 'k6/execution';
export const options = { scenarios: { a: { executor: 'shared-iterations', iterations: 2 }, b: { executor: 'per-vu-iterations', vus: 2, iterations: 3, exec: 'other' } } };
export default function () {
  console.log(exec.scenario.name);
}
export function other() { console.log(exec.scenario.name + '!'); }
