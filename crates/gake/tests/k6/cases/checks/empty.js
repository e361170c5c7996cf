import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  console.log(check(1, {}));
}
