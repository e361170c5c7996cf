import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/echo`, { headers: { 'x-my': 'a', 'User-Agent': 'me' } }); console.log(r.request.headers['X-My'], r.request.headers['User-Agent'], r.request.method, r.request.url === `${__ENV.URL}/echo`);
}
