import http from 'k6/http';
export default function () {
  try { http.get('http://127.0.0.1:1/', { throw: true }); } catch (e) { console.log('caught'); }
}
