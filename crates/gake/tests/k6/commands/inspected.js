import http from 'k6/http';
export const options = { vus: 3, duration: '5s', thresholds: { checks: ['rate>0.9'] }, tags: {a:'b'} };
export default function () { http.get('http://x/'); }
