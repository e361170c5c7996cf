import http from 'k6/http';
export default function () {
  http.get(`${__ENV.URL}/status/404`); http.get(`${__ENV.URL}/status/404`, { responseCallback: http.expectedStatuses(404) }); http.get(`${__ENV.URL}/fast`, { responseCallback: http.expectedStatuses({ min: 300, max: 500 }) });
}
