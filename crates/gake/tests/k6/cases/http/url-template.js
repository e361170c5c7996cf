import http from 'k6/http';
export default function () {
  const id = 7; const r = http.get(http.url`${__ENV.URL}/status/${200 + 0}?x=${id}`); console.log(r.status);
}
