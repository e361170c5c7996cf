// Gives a value to everything that takes values from scripts.
import { check, fail, group, sleep } from 'k6';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import { parseHTML } from 'k6/html';
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

const metrics = [new Counter('a_counter'), new Gauge('a_gauge'), new Rate('a_rate'), new Trend('a_trend', true)];

const takers = [
  (x) => console.log(x, [x], { x }),
  (x) => check(x, { is: () => x, 'another': (y) => y === x }),
  (x) => check(x, x),
  (x) => check(null, { one: true }, x),
  (x) => group(x, () => x),
  (x) => group('one', x),
  (x) => fail(x),
  (x) => sleep(x),
  ...metrics.flatMap((metric) => [(x) => metric.add(x), (x) => metric.add(1, x), (x) => metric.add(x, { x })]),
  (x) => { exec.vu.tags.one = x; },
  (x) => { exec.vu.metrics.tags[x] = x; },
  (x) => http.get(x),
  (x) => http.get('http://blocked.test/', x),
  (x) => http.post('http://blocked.test/', x, { headers: x, tags: x, cookies: x }),
  (x) => http.request(x, 'http://blocked.test/', x, { timeout: x, redirects: x, auth: x }),
  (x) => http.request(x.method, x.url, x.body, x.params),
  (x) => http.batch(x),
  (x) => http.batch([x, ['GET', x], { method: x, url: x }]),
  (x) => http.asyncRequest('GET', x, x, x),
  (x) => http.url(x, x),
  (x) => http.file(x, x, x),
  (x) => http.setResponseCallback(http.expectedStatuses(x, { min: x, max: x })),
  (x) => http.setResponseCallback(x),
  (x) => { const jar = new http.CookieJar(); jar.set('http://a.test/', x, x, x); jar.cookiesForURL(x); },
  (x) => crypto.sha256(x, x),
  (x) => crypto.hmac('sha1', x, x, 'binary'),
  (x) => crypto.createHash('md5').update(x),
  (x) => crypto.hexEncode(x),
  (x) => encoding.b64encode(x, x),
  (x) => encoding.b64decode(x, x, x),
  (x) => parseHTML(x).find(x).attr(x),
  (x) => parseHTML('<form><input name=a></form>').find(x).each(x),
  (x) => setTimeout(x, x, x),
  (x) => clearTimeout(x),
  (x) => { __ENV.other = x; },
  (x) => x.then((y) => console.log(y)),
];

// Values are evaluated outside of this module.
Object.assign(globalThis, { exec, http });

export default function () {
  const value = (0, eval)(__ENV.VALUE);
  for (const take of takers) {
    try {
      take(value);
    } catch (error) {
      console.log(error);
    }
  }
  return value;
}
