import { check } from 'k6';
export default function () {
  console.log(check(1, { 'a promise of a function': () => Promise.resolve(false), 'a promise': Promise.resolve(0) }));
}
