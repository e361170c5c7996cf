import http from 'k6/http';
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, { b: 'x y', a: '1&2', n: 3 }); console.log(r.json('body'), r.request.headers['Content-Type']);
}
