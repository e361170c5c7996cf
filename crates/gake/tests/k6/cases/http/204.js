import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/status/204`); console.log(r.status, r.body);
}
