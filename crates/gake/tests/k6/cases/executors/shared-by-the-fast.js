// Of shared iterations a fast user makes more than a slow one.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
const made = new Counter('made_by');
export const options = {
  vus: 3,
  iterations: 24,
  thresholds: { 'made_by{user:1}': ['count<5'], 'made_by{user:2}': ['count>8'], 'made_by{user:3}': ['count>8'] },
};
export default function () {
  made.add(1, { user: String(exec.vu.idInTest) });
  sleep(exec.vu.idInTest === 1 ? 0.5 : 0.06);
}
