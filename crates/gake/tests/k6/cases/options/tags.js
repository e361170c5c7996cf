import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('my_counter');
export const options = { tags: { run: 'x' }, thresholds: { 'my_counter{run:x}': ['count==1'] } };
export default function () {
  c.add(1);
}
