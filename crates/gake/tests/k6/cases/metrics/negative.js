import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t1 = new Trend('t1');
const c1 = new Counter('c1');
const r1 = new Rate('r1');
const g1 = new Gauge('g1');
export default function () {
  c1.add(-3); t1.add(-5); g1.add(-1);
}
