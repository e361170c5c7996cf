import { check, sleep } from 'k6';

export const options = { vus: 3, iterations: 9 };

function* naturals() {
  for (let n = 0; ; n += 1) {
    sleep(0.001);
    yield n;
  }
}

function* pairs(left, right) {
  const [one, other] = [left(), right()];
  for (;;) {
    try {
      yield [one.next().value, other.next().value];
    } finally {
      sleep(0.001);
    }
  }
}

export default function () {
  let sum = 0;
  for (const [one, other] of pairs(naturals, naturals)) {
    if (one > 10) break;
    sum += one * other;
  }
  const early = naturals();
  early.next();
  check(null, {
    sum: () => sum === 385,
    'it ends early': () => early.return(7).value === 7 && early.next().done,
  });
}
