import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '1s' } } };
export default function () {
  sleep(0.4);
}
