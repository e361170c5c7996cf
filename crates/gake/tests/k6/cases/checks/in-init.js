import { check, group, sleep, fail, randomSeed } from 'k6';
check(1, { a: true });
export default function () {
  
}
