import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  sleep(0); sleep(-1); console.log('done');
}
