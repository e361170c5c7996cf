import http from 'k6/http';
export default function () {
  const url = `${__ENV.URL}/echo`;
  for (const body of [{ a: null, b: undefined, c: [1, null], d: true, e: 1.5 }, '', 'ä', null, undefined]) {
    console.log(JSON.stringify(http.post(url, body).json('body')));
  }
  for (const body of [[1, 2], [], 5, true]) {
    const r = http.post(url, body);
    console.log(r.status);
  }
}
