import { check, sleep } from 'k6';

export const options = { vus: 3, iterations: 9 };

function* naturals() {
  for (let n = 0; ; n += 1) {
    sleep(0.001);
    yield n;
  }
}

async function* delayed(values) {
  for (const value of values) {
    await null;
    yield value;
  }
}

export default async function () {
  let sum = 0;
  for (const n of naturals()) {
    if (n > 10) break;
    sum += n;
  }
  const seen = [];
  for await (const value of delayed([1, 2, 3])) seen.push(value);
  check(null, { sum: () => sum === 55, seen: () => seen.join() === '1,2,3' });
}
