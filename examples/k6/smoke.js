// Smoke test: a few requests of one user must all succeed; the exit code is 99 if not.
//   gake run examples/k6/smoke.js -e URL=http://127.0.0.1:8080
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';

export const options = {
  vus: 1,
  iterations: 5,
  thresholds: { checks: ['rate==1'], http_req_duration: ['p(95)<1000'] },
};

export default function () {
  const response = http.get(`${url}/`);
  check(response, { 'status is 200': (r) => r.status === 200 });
}
