import http from 'k6/http';
export default function () {
  const u = __ENV.URL; const rs = http.batch([`${u}/fast`, ['GET', `${u}/status/404`], { method: 'POST', url: `${u}/echo`, body: 'x' }]); console.log(rs.length, rs.map((r) => r.status).join());
}
