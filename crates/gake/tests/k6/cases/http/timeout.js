import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/delay/2s`, { timeout: '200ms' }); console.log(r.status, r.error_code, r.error);
}
