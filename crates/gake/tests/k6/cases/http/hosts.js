import http from 'k6/http';
export const options = { hosts: { 'my.test': '127.0.0.1' } };
export default function () {
  const r = http.get(__ENV.URL.replace('127.0.0.1', 'my.test') + '/fast'); console.log(r.status);
}
