import { check, group } from 'k6';
import { Counter, Trend } from 'k6/metrics';
const made = ['Zeta', 'alpha', 'Beta', 'my_a', 'myA'].map((name) => new Counter(name));
const trend = new Trend('vus_busy');
export const options = { thresholds: { Beta: ['count>0'], 'alpha{x:/a/{id}}': ['count>0'], 'alpha{y:b}': ['count>=0'], myA: ['count>0'], 'alpha{x:B}': ['count>=0'] } };
export function setup() { check(1, { 'of setup': () => true }); }
export default function () {
  made.forEach((metric) => metric.add(1, { x: '/a/{id}' }));
  trend.add(1);
  group('z', () => check(1, { b: () => true, a: () => true }));
  group('a', () => check(1, { z: () => true }));
}
export function teardown() { check(1, { 'of teardown': () => true }); }
