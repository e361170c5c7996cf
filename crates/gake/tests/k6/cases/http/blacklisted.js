import http from 'k6/http';
export const options = { blacklistIPs: ['127.0.0.0/8'] };
export default function () {
  const r = http.get(`${__ENV.URL}/fast`); console.log(r.status, r.error_code);
}
