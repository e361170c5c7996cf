// What init code may not call.
import http from 'k6/http';
import { check, group } from 'k6';
import { Counter } from 'k6/metrics';
const counter = new Counter('counted');
for (const [name, call] of Object.entries({
  get: () => http.get('http://127.0.0.1:1/'),
  put: () => http.put('http://127.0.0.1:1/'),
  request: () => http.request('GET', 'http://127.0.0.1:1/'),
  batch: () => http.batch([]),
  jar: () => http.cookieJar(),
  check: () => check(1, { ok: true }),
  group: () => group('g', () => 1),
  add: () => counter.add(1),
  'add nothing': () => counter.add(),
  'add a text': () => counter.add('x'),
})) {
  try {
    call();
    console.log(`${name}: done`);
  } catch (error) {
    console.log(`${name}: ${error.name} ${error.message}`);
  }
}
export default function () {}
