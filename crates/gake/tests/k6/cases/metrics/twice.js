import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const a = new Counter('same');
const b = new Counter('same');
export default function () {
  a.add(1); b.add(2);
}
