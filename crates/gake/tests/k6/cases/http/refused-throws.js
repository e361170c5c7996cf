import http from 'k6/http';
export const options = { throw: true };
export default function () {
  http.get('http://127.0.0.1:1/'); console.log('not reached');
}
