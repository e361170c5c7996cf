// Stress test: twice and three times the users of an ordinary day. MINUTE_MS shortens it.
//   gake run examples/k6/stress.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check, sleep } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const users = Number(__ENV.USERS || 50);
const minute = Number(__ENV.MINUTE_MS || 60000);
const minutes = (count) => `${count * minute}ms`;

export const options = {
  stages: [1, 2, 3].flatMap((times) => [
    { duration: minutes(1), target: users * times },
    { duration: minutes(4), target: users * times },
  ]).concat([{ duration: minutes(2), target: 0 }]),
  thresholds: { http_req_failed: ['rate<0.05'] },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
  sleep(minute / 60000);
}
