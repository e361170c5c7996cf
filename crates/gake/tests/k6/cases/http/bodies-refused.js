import http from 'k6/http';
export default function () {
  for (const body of [5, 1.5, true, [1], () => 1, new Date(0)]) {
    const r = http.post(`${__ENV.URL}/echo`, body);
    console.log(r.status, r.error_code, r.error, JSON.stringify(r.body), r.url, r.request);
  }
  for (const data of [{ a: 1 }, [1], new Uint8Array(2), new Float64Array(2), new Uint8ClampedArray(2)]) {
    try { http.file(data); } catch (e) { console.log(e.message); }
  }
}
