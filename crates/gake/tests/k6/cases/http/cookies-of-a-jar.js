import http from 'k6/http';
export default function () {
  const seen = http.get(`${__ENV.URL}/echo`, { cookies: new http.CookieJar() }).request.headers.Cookie[0];
  console.log(seen.split('; ').sort().join('; '));
}
