import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  check(1, { boom: () => { throw new Error('in check'); } }); console.log('not reached');
}
