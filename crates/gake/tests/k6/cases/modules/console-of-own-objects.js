import http from 'k6/http';
class Own {
  constructor() { this.q = 'a"b\\'; }
  toJSON() { return 'not this'; }
}
export default function () {
  console.log({ s: 'say "hi"', d: new Date(0), o: new Own(), m: new Map([[1, 2]]), f() {} });
  console.log(new Own(), [new Date(NaN)], '✔️ 👨‍💻 \u200b\u00ad\ufeff', http.url`${__ENV.URL}/q`);
  const r = http.get(`${__ENV.URL}/echo`);
  console.log(Object.keys(r).join());
}
