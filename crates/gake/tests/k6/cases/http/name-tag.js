import http from 'k6/http';
export const options = { thresholds: { 'http_reqs{name:fast}': ['count==1'] } };
export default function () {
  http.get(`${__ENV.URL}/fast?x=1`, { tags: { name: 'fast' } });
}
