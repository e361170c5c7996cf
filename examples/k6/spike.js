// Spike test: ten times the rate for a minute, then back. MINUTE_MS shortens it.
//   gake run examples/k6/spike.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const rate = Number(__ENV.RATE || 100);
const minute = Number(__ENV.MINUTE_MS || 60000);
const minutes = (count) => `${count * minute}ms`;

export const options = {
  scenarios: {
    spike: {
      executor: 'ramping-arrival-rate',
      startRate: rate,
      preAllocatedVUs: Number(__ENV.USERS || 200),
      stages: [
        { duration: minutes(1), target: rate },
        { duration: minutes(0.5), target: rate * 10 },
        { duration: minutes(1), target: rate * 10 },
        { duration: minutes(0.5), target: rate },
        { duration: minutes(2), target: rate },
      ],
    },
  },
  // After the spike, responses must be as quick as before it.
  thresholds: { http_req_failed: ['rate<0.05'] },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
}
