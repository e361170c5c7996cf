// args: --tag run=y
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('my_counter');
export const options = { thresholds: { 'my_counter{run:y}': ['count==1'] } };
export default function () {
  c.add(1);
}
