import http from 'k6/http';
export const options = { insecureSkipTLSVerify: true };
export default function () {
  const r = http.post(`${__ENV.TLS_URL}/echo`, { a: 1 });
  const echoed = r.json();
  console.log(r.status, r.status_text, r.proto, r.tls_version, echoed.version, echoed.body, r.remote_ip);
  console.log(/^TLS_AES_\d+_GCM_SHA\d+$/.test(r.tls_cipher_suite), Object.keys(r.request.headers).sort());
  console.log(http.get(`${__ENV.TLS_URL}/status/404`).status_text);
}
