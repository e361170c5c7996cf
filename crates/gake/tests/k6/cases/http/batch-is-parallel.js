import http from 'k6/http';
export default function () {
  const t = Date.now(); http.batch(Array(5).fill(`${__ENV.URL}/delay/200ms`)); console.log(Date.now() - t < 600);
}
