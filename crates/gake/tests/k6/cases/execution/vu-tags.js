import exec from 'k6/execution';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('cc');
export const options = { thresholds: { 'cc{who:me}': ['count==1'] } };
export default function () {
  exec.vu.tags.who = 'me'; c.add(1); delete exec.vu.tags.who; c.add(5); console.log(Object.keys(exec.vu.tags).sort().join());
}
