import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const c = new Counter('cc');
const r = new Rate('rr');
export const options = { vus: 4, iterations: 40 };
export default function () {
  c.add(2); r.add(__VU > 0);
}
