import http from 'k6/http';
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, JSON.stringify({ a: [1, { b: 'c' }] }), { headers: { 'Content-Type': 'application/json' } }); const b = JSON.parse(r.json('body')); console.log(r.json('headers.content-type'), r.json('body_bytes'), r.json('nope'), b.a[1].b, typeof r.json());
}
