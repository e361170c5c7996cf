import http from 'k6/http';
http.get('http://127.0.0.1:1/');
export default function () {
  
}
