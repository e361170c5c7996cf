import http from 'k6/http';
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, 'hello'); console.log(r.json('body'));
}
