import http from 'k6/http';
export default async function () {
  const url = `${__ENV.URL}/echo`;
  const jar = http.cookieJar();
  jar.set(url, 'early', '1');
  const later = http.asyncRequest('GET', url);
  jar.set(url, 'late', '2');
  console.log((await later).request.headers.Cookie);
  console.log(http.get(url).request.headers.Cookie);
}
