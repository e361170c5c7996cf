import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { thresholds: { 'checks{a:b}': ['rate==1'] } };
export default function () {
  check(1, { x: true }, { a: 'b' }); check(1, { x: false });
}
