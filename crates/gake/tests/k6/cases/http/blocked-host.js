import http from 'k6/http';
export const options = { blockHostnames: ['*.example.com'] };
export default function () {
  const r = http.get('http://a.example.com/'); console.log(r.status, r.error_code);
}
