import http from 'k6/http';
export const options = { vus: 3, iterations: 6, rps: 100 };
export default function () {
  http.get(`${__ENV.URL}/fast`);
}
