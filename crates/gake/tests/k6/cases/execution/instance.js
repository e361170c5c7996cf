import exec from 'k6/execution';
export const options = { vus: 2, iterations: 2 };
export default function () {
  const i = exec.instance; console.log(i.vusInitialized, i.vusActive, i.iterationsInterrupted, i.currentTestRunDuration >= 0);
}
