import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  console.log(check(null, { zero: () => 0, text: () => 'x', nothing: () => undefined, list: () => [] }));
}
