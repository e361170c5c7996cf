import http from 'k6/http';
export default function () {
  for (const s of [201, 301, 400, 404, 500, 503]) { const r = http.get(`${__ENV.URL}/status/${s}`, { redirects: 0 }); console.log(r.status, r.error_code, r.error); }
}
