// Crowd test: all users arrive at once, send one request each and wait for up to a minute. Without a
// script: `gake run URL -c N --once`.
//   gake run examples/k6/crowd.js -e URL=http://127.0.0.1:8080 -e USERS=3000
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const minute = Number(__ENV.MINUTE_MS || 60000);

export const options = {
  scenarios: {
    crowd: {
      executor: 'per-vu-iterations',
      vus: Number(__ENV.USERS || 300),
      iterations: 1,
      // Longer than any request waits, so that all of them are counted.
      maxDuration: `${Math.max(1000, 2 * minute)}ms`,
    },
  },
};

export default function () {
  const response = http.get(`${url}/`, { timeout: minute });
  check(response, { 'status is 200': (r) => r.status === 200 });
}
