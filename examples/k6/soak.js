// Soak test: hours of an ordinary load, to find what leaks. MINUTE_MS shortens it.
//   gake run examples/k6/soak.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check, sleep } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const minute = Number(__ENV.MINUTE_MS || 60000);

export const options = {
  scenarios: {
    soak: {
      executor: 'constant-vus',
      vus: Number(__ENV.USERS || 20),
      duration: `${Math.max(240 * minute, 1000)}ms`,
    },
  },
  thresholds: { http_req_failed: ['rate<0.01'], checks: ['rate>0.99'] },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
  sleep(minute / 60000);
}
