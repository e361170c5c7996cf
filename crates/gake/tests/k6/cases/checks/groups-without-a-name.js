import { check, group } from 'k6';
import { Trend } from 'k6/metrics';
export const options = {
  summaryTrendStats: ['avg'],
  thresholds: { tr: ['p(99)<100', 'med<100', 'min<100', 'max<100', 'avg<100'] },
};
const tr = new Trend('tr');
export default function () {
  tr.add(1);
  group('', () => { check(1, { r: () => true }); group('x', () => check(1, { x: () => true })); });
  group('é', () => group('', () => { check(1, { a: () => true }); group('y', () => {}); }));
}
