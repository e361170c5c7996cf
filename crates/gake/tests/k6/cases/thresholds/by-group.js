import { check, group, sleep, fail, randomSeed } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t = new Trend('tt');
export const options = { thresholds: { 'tt{group:::one}': ['max==1'], 'tt{group:::one::two}': ['max==2'] } };
export default function () {
  group('one', () => { t.add(1); group('two', () => t.add(2)); });
}
