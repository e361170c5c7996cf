import http from 'k6/http';
export function setup() { http.get(`${__ENV.URL}/fast`); }
export default function () {
  http.get(`${__ENV.URL}/fast`);
}
