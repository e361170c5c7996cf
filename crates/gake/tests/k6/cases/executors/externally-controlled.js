// env: GAKE_K6_VERSION=1.8
import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'externally-controlled', vus: 2, maxVUs: 4, duration: '1s' } } };
export default function () {
  sleep(0.7);
}
