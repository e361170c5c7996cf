import http from 'k6/http';
export default function () {
  const r = http.get('/path'); console.log(r.status, r.error_code);
}
