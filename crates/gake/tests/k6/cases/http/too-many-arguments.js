import http from 'k6/http';
export default function () {
  const url = `${__ENV.URL}/fast`;
  console.log(http.get(url, null, { headers: { a: 'b' } }).status, http.head(url, {}, {}, 1).status);
}
