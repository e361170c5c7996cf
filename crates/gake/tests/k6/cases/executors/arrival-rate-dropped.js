import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 10, duration: '1050ms', preAllocatedVUs: 1, gracefulStop: '3s' } } };
export default function () {
  sleep(1.45);
}
