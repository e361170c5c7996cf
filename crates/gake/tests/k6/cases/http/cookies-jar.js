import http from 'k6/http';
export default function () {
  const jar = http.cookieJar(); jar.set(__ENV.URL, 'a', 'b'); const r = http.get(`${__ENV.URL}/echo`); console.log(JSON.stringify(jar.cookiesForURL(__ENV.URL)), r.request.cookies.a[0].value);
}
