import http from 'k6/http';
export const options = { discardResponseBodies: true };
export default function () {
  console.log(http.get(`${__ENV.URL}/fast`).body, http.get(`${__ENV.URL}/bytes/4`, { responseType: 'text' }).body.length);
}
