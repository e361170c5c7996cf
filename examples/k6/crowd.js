// Crowd test: everybody comes at once, asks once and waits for a minute. `gake run URL -c N --once`
// without a script.
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
      // Nobody waits longer than that, and everybody is heard.
      maxDuration: `${Math.max(1000, 2 * minute)}ms`,
    },
  },
};

export default function () {
  const response = http.get(`${url}/`, { timeout: minute });
  check(response, { 'status is 200': (r) => r.status === 200 });
}
