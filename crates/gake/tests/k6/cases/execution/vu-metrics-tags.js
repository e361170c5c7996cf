import exec from 'k6/execution';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('cc');
export const options = { thresholds: { 'cc{who:me}': ['count==1'] } };
export default function () {
  exec.vu.metrics.tags.who = 'me'; c.add(1);
}
