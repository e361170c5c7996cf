import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t1 = new Trend('t1');
const c1 = new Counter('c1');
const r1 = new Rate('r1');
const g1 = new Gauge('g1');
export default function () {
  console.log(t1.add(1), t1.name);
}
