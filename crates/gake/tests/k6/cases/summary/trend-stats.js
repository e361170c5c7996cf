import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t = new Trend('tt');
export const options = { summaryTrendStats: ['min', 'p(99.9)', 'count'] };
export default function () {
  for (let i = 1; i <= 100; i++) t.add(i);
}
