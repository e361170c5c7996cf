import http from 'k6/http';
export default function () {
  const r = http.get(`${__ENV.URL}/fast`); try { r.json(); } catch (e) { console.log(e.name !== undefined); }
}
