// The numbers of iterations have no gaps, however many users there are.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
const beyond = new Counter('beyond');
export const options = {
  vus: 3,
  duration: '1s',
  thresholds: { beyond: ['count==0'], iterations: ['count==24'] },
};
export default function () {
  sleep(exec.vu.idInTest === 1 ? 0.6 : 0.095);
  beyond.add(exec.scenario.iterationInTest < 24 ? 0 : 1);
}
