// Load test: the users of an ordinary day. MINUTE_MS shortens it.
//   gake run examples/k6/load.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check, sleep } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const users = Number(__ENV.USERS || 50);
const minute = Number(__ENV.MINUTE_MS || 60000);
const minutes = (count) => `${count * minute}ms`;

export const options = {
  stages: [
    { duration: minutes(2), target: users },
    { duration: minutes(10), target: users },
    { duration: minutes(1), target: 0 },
  ],
  thresholds: { http_req_failed: ['rate<0.01'], http_req_duration: ['p(95)<1000'] },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
  sleep(minute / 60000);
}
