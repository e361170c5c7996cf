import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  const ok = check({ a: 1 }, { one: (o) => o.a === 1, two: (o) => o.a === 2, three: true }); console.log(ok);
}
