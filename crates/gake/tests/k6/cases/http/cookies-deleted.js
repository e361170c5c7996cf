import http from 'k6/http';
export default function () {
  const jar = http.cookieJar();
  jar.set(`${__ENV.URL}/`, 'a', '1');
  jar.set(`${__ENV.URL}/deep/er`, 'b', '2');
  jar.set(`${__ENV.URL}/deep/er`, 'c', '3', { Path: '/' });
  const shown = () => JSON.stringify(Object.entries(jar.cookiesForURL(`${__ENV.URL}/deep/x`)).sort());
  jar.delete(`${__ENV.URL}/deep/er`, 'a');
  console.log(shown());
  jar.delete(`${__ENV.URL}/deep/er`, 'b');
  jar.clear(`${__ENV.URL}/`);
  console.log(shown());
  try { jar.delete(`${__ENV.URL}/`, ''); } catch (e) { console.log(e.message); }
}
