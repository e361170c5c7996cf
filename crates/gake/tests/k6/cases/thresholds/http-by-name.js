import http from 'k6/http';
export const options = { thresholds: { 'http_reqs{name:home}': ['count==2'], 'http_reqs{status:404}': ['count==1'], 'http_req_failed{name:home}': ['rate==0'] } };
export default function () {
  for (let i = 0; i < 2; i++) http.get(`${__ENV.URL}/fast`, { tags: { name: 'home' } }); http.get(`${__ENV.URL}/status/404`);
}
