import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const page = http.get(`${__ENV.URL}/fast`);
  console.log(page.json('a.b'), page.json('0'), page.json('#'));
  check(page, { 'has a name': (r) => r.json('name') !== undefined });
  const empty = http.get(`${__ENV.URL}/bytes/0`);
  console.log(empty.json('a'));
  try { page.json(); } catch (error) { console.log('without a path', error instanceof Error); }
}
