import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'ramping-vus', startVUs: 2, stages: [{ duration: '500ms', target: 2 }, { duration: '0s', target: 1 }, { duration: '500ms', target: 1 }], gracefulRampDown: '5s' } } };
export default function () {
  sleep(0.35);
}
