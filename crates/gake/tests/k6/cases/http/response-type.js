import http from 'k6/http';
export default function () {
  const u = `${__ENV.URL}/bytes/5`; const a = http.get(u, { responseType: 'binary' }); const b = http.get(u, { responseType: 'none' }); const c = http.get(u); console.log(a.body.byteLength, b.body, c.body.length);
}
