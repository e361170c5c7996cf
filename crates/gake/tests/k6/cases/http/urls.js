import http from 'k6/http';

const bad = [
  'http:// bad', 'http://127.0.0.1:x/', 'http://127.0.0.1/%zz', 'http://127.0.0.1/#%4', ':', ' http://127.0.0.1/',
  'http://127.0.0.1/\t',
];

export default function () {
  for (const path of ['/a b/c', '/ü', '/p|q{r}^', '/a\\b', "/it's", '/%2Fa', '/x#frag ment', '/x#', '?x=1']) {
    const { status, url, request } = http.get(`${__ENV.URL}${path}`);
    console.log(status, url.replace(__ENV.URL, ''), request.url.replace(__ENV.URL, ''));
  }
  for (const url of bad) {
    const response = http.get(url);
    console.log(response.error, response.error_code, JSON.stringify(response.url), response.request, response.body.length);
  }
  console.log(http.get('http://127.0.0.1:99999/').error);
}
