import exec from 'k6/execution';
export const options = { scenarios: { a: { executor: 'shared-iterations', iterations: 4, vus: 1 }, b: { executor: 'per-vu-iterations', iterations: 2, vus: 1, startTime: '200ms' } } };
export function setup() { console.log(exec.instance.vusInitialized); }
export default function () { console.log(exec.scenario.name, exec.scenario.progress); }
