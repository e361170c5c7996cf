import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t = new Trend('waits', true);
export default function () {
  t.add(1500); t.add(0.5); t.add(250);
}
