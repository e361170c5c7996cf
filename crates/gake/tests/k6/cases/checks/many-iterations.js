import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { vus: 3, iterations: 30 };
export default function () {
  check(__ITER, { always: true, never: false });
}
