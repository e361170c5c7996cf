import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('cc');
export const options = { thresholds: { 'cc{k:1}': ['count==5'], 'cc{k:two}': ['count==6'] } };
export default function () {
  c.add(5, { k: 1 }); c.add(6, { k: 'two' });
}
