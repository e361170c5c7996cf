import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/fast`); console.log(r.status, r.body.length > 0, r.status_text, r.proto, typeof r.timings.duration, r.error, r.error_code);
}
