import { check, group } from 'k6';
import { Counter } from 'k6/metrics';
const steps = new Counter('steps');
export const options = { thresholds: { 'checks{group:::setup}': ['rate==1'], 'steps{group:::setup::in}': ['count==1'] } };
export function setup() {
  check(1, { 'set up': () => true });
  group('in', () => { steps.add(1); check(1, { deeper: () => false }); });
}
export default function () { check(1, { 'in default': () => true }); }
export function teardown() { check(1, { 'torn down': () => true }); }
