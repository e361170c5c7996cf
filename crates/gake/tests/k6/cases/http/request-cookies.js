import http from 'k6/http';
export default function () {
  const cookies = { a: '1', b: { value: '2', replace: true } };
  const r = http.get(`${__ENV.URL}/echo`, { cookies });
  console.log(JSON.stringify(r.request.cookies), r.request.headers.Cookie);
}
