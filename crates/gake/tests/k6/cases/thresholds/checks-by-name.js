import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { thresholds: { checks: ['rate>=0.5'], 'checks{check:good}': ['rate==1'], 'checks{check:bad}': ['rate==1'] } };
export default function () {
  check(1, { good: (v) => v === 1, bad: (v) => v === 2 });
}
