import http from 'k6/http';
import ws from 'k6/ws';
export default function () {
  const r = http.get(__ENV.TLS_URL);
  console.log(r.status, r.error_code, r.error);
  console.log(ws.connect(__ENV.TLS_URL.replace('http', 'ws'), () => {}).error);
}
