import http from 'k6/http';
export const options = { iterations: 2 };
export function setup() { http.get(`${__ENV.URL}/echo`); }
export default function () { http.get(`${__ENV.URL}/echo`); http.get(`${__ENV.URL}/echo`); }
