// Requests that the end of the test cuts are no failures, and in no times.
import http from 'k6/http';
export const options = {
  scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } },
  thresholds: { http_req_failed: ['rate==0'], http_req_duration: ['max<500'] },
};
export default function () {
  http.get(`${__ENV.URL}/fast`);
  http.get(`${__ENV.URL}/delay/20s`);
}
