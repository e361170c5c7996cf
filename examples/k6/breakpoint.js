// Breakpoint test: the rate rises until a threshold is missed, which ends the run with exit code 99.
// MINUTE_MS shortens it. `gake find` searches the same rate with an interval.
//   gake run examples/k6/breakpoint.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const minute = Number(__ENV.MINUTE_MS || 60000);

export const options = {
  scenarios: {
    breakpoint: {
      executor: 'ramping-arrival-rate',
      startRate: 1,
      preAllocatedVUs: Number(__ENV.USERS || 500),
      stages: [{ duration: `${60 * minute}ms`, target: Number(__ENV.RATE || 5000) }],
    },
  },
  thresholds: {
    http_req_failed: [{ threshold: 'rate<0.05', abortOnFail: true }],
    http_req_duration: [{ threshold: 'p(95)<2000', abortOnFail: true }],
  },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
}
