import http from 'k6/http';
export const options = { iterations: 2, noCookiesReset: true };
export default function () {
  const jar = http.cookieJar(); console.log(JSON.stringify(jar.cookiesForURL(__ENV.URL))); jar.set(__ENV.URL, 'a', 'b');
}
