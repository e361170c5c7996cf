import http from 'k6/http';
export default function () {
  const u = __ENV.URL; const rs = http.batch({ a: `${u}/fast`, b: `${u}/status/503` }); console.log(rs.a.status, rs.b.status);
}
