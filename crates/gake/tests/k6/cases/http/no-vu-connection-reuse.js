import http from 'k6/http';
export const options = { iterations: 3, noVUConnectionReuse: true };
export default function () {
  const opened = [1, 2].map(() => http.get(`${__ENV.URL}/fast`).timings.connecting > 0);
  console.log(opened.join());
}
