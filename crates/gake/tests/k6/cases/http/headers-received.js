import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/fast`); console.log(r.headers['Content-Type'], Object.keys(r.headers).includes('content-type'));
}
