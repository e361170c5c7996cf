import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 20, duration: '1030ms', timeUnit: '1s', preAllocatedVUs: 5 } } };
export default function () {
  if (__ITER < 0) sleep(1);
}
