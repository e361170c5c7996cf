import http from 'k6/http';
import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { vus: 5, iterations: 50 };
export default function () {
  check(http.get(`${__ENV.URL}/fast`), { ok: (r) => r.status === 200 });
}
