import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t1 = new Trend('t1');
const c1 = new Counter('c1');
const r1 = new Rate('r1');
const g1 = new Gauge('g1');
export default function () {
  t1.add(NaN); c1.add('x'); t1.add(undefined); console.log('after');
}
