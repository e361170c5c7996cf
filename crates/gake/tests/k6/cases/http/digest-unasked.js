import http from 'k6/http';

export const options = { iterations: 1, thresholds: { http_req_failed: ['rate==1'] } };

// The first response of a digest request should be a challenge.
export default function () {
  console.log(http.get(`${__ENV.URL}/fast`, { auth: 'digest' }).status);
}
