import http from 'k6/http';
export default function () {
  const url = `${__ENV.URL}/echo`;
  const jar = http.cookieJar();
  jar.set(url, 'kept', 'two words');
  const r = http.get(url, { cookies: { plain: 'a=b', comma: 'x,y', blank: 'p q' } });
  const sent = r.json('headers.cookie') || r.json('headers.Cookie');
  console.log(String(sent).split('; ').sort().join('|'));
}
