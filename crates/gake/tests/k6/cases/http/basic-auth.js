import http from 'k6/http';
export default function () {
  const r = http.get(__ENV.URL.replace('//', '//user:pass@') + '/echo'); console.log(r.request.headers.Authorization, r.url.includes('pass'));
}
