import exec from 'k6/execution';
export const options = { vus: 1, iterations: 2 };
export default function () {
  const s = exec.scenario; console.log(s.name, s.executor, s.iterationInInstance, s.iterationInTest, s.progress >= 0, s.startTime > 0);
}
