// What wears a user out: exceptions, time-outs, rejections, recursion, garbage in circles, and
// iterations that are cancelled.
import { check, group, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';

const seconds = Number(__ENV.SECONDS);
const stages = [];
for (let second = 0; second < seconds; second += 2) {
  stages.push({ duration: '1s', target: 50 }, { duration: '1s', target: 0 });
}

export const options = {
  scenarios: {
    steady: { executor: 'constant-vus', vus: 150, duration: `${seconds}s`, gracefulStop: '5s' },
    leaving: {
      executor: 'ramping-vus', startVUs: 0, stages, gracefulRampDown: '0s', gracefulStop: '0s',
    },
  },
};

const counter = new Counter('soak_counter');
const trend = new Trend('soak_trend');

const kinds = [
  () => { throw new Error('thrown'); },
  () => http.get(`${__ENV.URL}delay/200ms`, { timeout: '20ms' }),
  () => Promise.reject(new Error('rejected')),
  () => { const recurse = () => recurse(); recurse(); },
  () => { const circle = { filling: 'x'.repeat(1000) }; circle.self = circle; sleep(0.02); },
  () => http.batch([`${__ENV.URL}fast`, `${__ENV.URL}bytes/20000`, `${__ENV.URL}status/503`]),
  () => group('a group', () => check(http.get(`${__ENV.URL}fast`), { ok: (r) => r.status === 200 })),
  async () => { await http.asyncRequest('GET', `${__ENV.URL}delay/5ms`); throw new Error('late'); },
  () => { counter.add(1); trend.add(exec.vu.iterationInInstance); setTimeout(() => sleep(0.01), 5); },
  () => sleep(30),
];

export default function () {
  sleep(0.02);
  // Only users who are made to leave may sleep for long.
  const last = exec.scenario.name === 'leaving' ? kinds.length : kinds.length - 1;
  return kinds[(exec.vu.iterationInInstance + exec.vu.idInTest) % last]();
}
