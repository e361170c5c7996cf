import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  const t = Date.now(); sleep(0.3); const d = Date.now() - t; console.log(d >= 299 && d < 600);
}
