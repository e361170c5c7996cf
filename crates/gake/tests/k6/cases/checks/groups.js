import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  group('one', () => { check(1, { a: true }); group('two', () => check(1, { b: false })); }); console.log(group('three', () => 42));
}
