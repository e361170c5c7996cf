// Tags that are no object are none, but for a text.
import http from 'k6/http';
import { check } from 'k6';
export default function () {
  for (const tags of [5, true, 'ab', null]) {
    const { status } = http.get(`${__ENV.URL}/`, { tags });
    check(status, { ok: (status) => status === 200 }, tags);
  }
}
