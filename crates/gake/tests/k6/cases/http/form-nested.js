import http from 'k6/http';
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, { a: null, b: undefined, c: [1, null, { d: 2 }], e: { f: 3 }, g: 'x' });
  console.log(r.request.body);
}
