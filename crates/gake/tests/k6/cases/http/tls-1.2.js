import http from 'k6/http';
export const options = {
  insecureSkipTLSVerify: true,
  tlsVersion: http.TLS_1_2,
  tlsCipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'],
  thresholds: { 'http_reqs{tls_version:tls1.2}': ['count==1'], 'http_reqs{proto:HTTP/2.0}': ['count==1'] },
};
export default function () {
  const r = http.get(`${__ENV.TLS_URL}/fast`);
  console.log(r.proto, r.tls_version, r.tls_cipher_suite);
}
