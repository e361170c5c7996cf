import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t1 = new Trend('t1');
const c1 = new Counter('c1');
const r1 = new Rate('r1');
const g1 = new Gauge('g1');
export const options = { thresholds: { r1: ['rate>0.5'] } };
export default function () {
  t1.add(5); t1.add(10); t1.add(20); c1.add(3); r1.add(true); r1.add(false); g1.add(7); g1.add(4);
}
