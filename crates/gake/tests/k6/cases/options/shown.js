import exec from 'k6/execution';
export const options = { vus: 2, iterations: 2, tags: { a: 'b' }, thresholds: { iterations: ['count==2', { threshold: 'count<9', abortOnFail: true }] } };
export default function () {
  if (exec.scenario.iterationInTest === 0) console.log(JSON.stringify(exec.test.options));
}
