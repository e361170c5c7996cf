import http from 'k6/http';
export default function () {
  http.setResponseCallback(http.expectedStatuses(404, 500)); http.get(`${__ENV.URL}/status/404`); http.get(`${__ENV.URL}/fast`); http.setResponseCallback(null); http.get(`${__ENV.URL}/status/500`);
}
