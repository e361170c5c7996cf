import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { stages: [{ duration: '300ms', target: 1 }, { duration: '300ms', target: 1 }] };
export default function () {
  sleep(0.25);
}
