import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/fast`);
  console.log(JSON.stringify(r.ocsp), r.ocsp.status === http.OCSP_STATUS_GOOD);
  for (const name of Object.keys(http).filter((name) => name.startsWith('OCSP')).sort()) console.log(name, http[name]);
}
