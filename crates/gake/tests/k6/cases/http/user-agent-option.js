import http from 'k6/http';
export const options = { userAgent: 'tester/1' };
export default function () {
  const r = http.get(`${__ENV.URL}/fast`); console.log(r.request.headers['User-Agent']);
}
