import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'ramping-vus', startVUs: 2, stages: [{ duration: '300ms', target: 2 }, { duration: '0s', target: 0 }, { duration: '400ms', target: 0 }], gracefulRampDown: '100ms' } } };
export default function () {
  sleep(0.9);
}
