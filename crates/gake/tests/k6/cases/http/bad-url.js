import http from 'k6/http';
export default function () {
  const r = http.get('http://[::1'); console.log(r.status, r.error_code);
}
