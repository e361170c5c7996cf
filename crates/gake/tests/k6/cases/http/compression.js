import http from 'k6/http';
export default function () {
  for (const compression of ['gzip', 'deflate', 'zstd', 'gzip, deflate', 'none']) {
    const r = http.post(`${__ENV.URL}/echo`, 'hello hello hello', { compression });
    console.log(compression, r.status, r.error || r.request.headers['Content-Encoding'] + r.request.body);
  }
  http.post(`${__ENV.URL}/echo`, 'hello', { compression: 'gzip', headers: { 'Content-Encoding': 'x' } });
}
