import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/echo`, { cookies: { one: '1', two: { value: '2', replace: true } } }); console.log(r.request.headers.Cookie.split('; ').sort().join());
}
