import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  randomSeed(42); const a = Math.random(); randomSeed(42); console.log(a === Math.random());
}
