import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  group('one', () => { throw new Error('inside'); });
}
