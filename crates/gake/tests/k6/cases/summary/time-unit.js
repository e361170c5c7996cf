import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t = new Trend('tt', true);
export const options = { summaryTimeUnit: 's' };
export default function () {
  t.add(1234.5);
}
