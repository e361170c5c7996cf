import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t1 = new Trend('t1');
const c1 = new Counter('c1');
const r1 = new Rate('r1');
const g1 = new Gauge('g1');
import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { duration: '20s', thresholds: { t1: [{ threshold: 'avg<1', abortOnFail: true }] } };
export default function () {
  t1.add(5); sleep(0.5);
}
