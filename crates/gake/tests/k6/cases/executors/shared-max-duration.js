import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'shared-iterations', vus: 1, iterations: 100, maxDuration: '1s', gracefulStop: '0s' } } };
export default function () {
  sleep(0.4);
}
