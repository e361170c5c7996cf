// Calls everything that takes sizes, lengths, counts or times from scripts.
import { randomSeed, sleep } from 'k6';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import { parseHTML } from 'k6/html';
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { ReadableStream } from 'k6/experimental/streams';

const metrics = [new Counter('a_counter'), new Trend('a_trend', true)];

// Around the limits of types, of the heap and of what is sensible.
const sizes = [
  0, 1, 2, 255, 256, 4096, 65536, 1e6, 2 ** 24, 2 ** 26, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32,
  2 ** 53 - 1, 2 ** 53, 2 ** 63, 2 ** 64, 1e308, -1, -(2 ** 31), -(2 ** 63), 0.5, NaN, Infinity, -Infinity,
];
// What is built only to be given away has the size of a body.
const text = (n) => 'x'.repeat(Math.min(n, 1e6));
const hollow = (n) => ({ length: n });

export const takers = [
  (n, m) => crypto.randomBytes(n, m),
  (n) => crypto.sha512(text(n), 'hex'),
  (n) => crypto.hmac('sha256', text(n), text(n), 'binary'),
  (n) => crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits'])
    .then((key) => crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(8), iterations: n }, key, 256)),
  (n, m) => crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits'])
    .then((key) => crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(8), iterations: n }, key, m)),
  (n) => crypto.subtle.generateKey({ name: 'AES-CBC', length: n }, true, ['encrypt']),
  (n) => crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256', length: n }, true, ['sign']),
  (n) => crypto.subtle.generateKey({ name: 'RSA-PSS', hash: 'SHA-256', modulusLength: n, publicExponent: new Uint8Array([1, 0, 1]) }, true, ['sign', 'verify']),
  (n) => globalThis.crypto.getRandomValues(new Uint8Array(n)),
  (n) => encoding.b64encode(text(n), 'url'),
  (n) => encoding.b64encode(new ArrayBuffer(n)),
  (n) => encoding.b64decode(text(n)),
  (n) => atob(btoa(text(n))),
  (n) => new TextDecoder().decode(new Uint8Array(n)),
  (n) => new TextEncoder().encode(text(n)),
  (n, m) => new TextEncoder().encodeInto(text(n), new Uint8Array(m)),
  (n) => parseHTML('<p>'.repeat(Math.min(n, 1e5))).find('p').eq(n),
  (n, m) => parseHTML('<p></p><p></p>').find('p').slice(n, m).get(m),
  (n) => http.get('http://blocked.test/', { timeout: n, redirects: n }),
  (n, m) => http.post('http://blocked.test/', new ArrayBuffer(n), { timeout: m }),
  (n) => http.batch(hollow(n)),
  (n) => http.batch(Array(n)),
  (n) => http.post('http://blocked.test/', { f: http.file(new ArrayBuffer(n), text(n)) }),
  (n) => http.post('http://blocked.test/', text(n), { compression: 'gzip, deflate, zstd, br' }),
  (n, m) => http.expectedStatuses(n, { min: n, max: m }),
  (n) => http.url`http://a.test/${n}`,
  (n) => { const jar = new http.CookieJar(); jar.set('http://a.test/', 'a', text(n), { max_age: n, expires: String(n) }); },
  (n) => sleep(n),
  (n) => randomSeed(n),
  (n, m) => clearTimeout(setTimeout(() => {}, n, m)),
  (n) => clearInterval(n),
  (n, m) => metrics.forEach((metric) => metric.add(n, { m })),
  (n) => { exec.vu.tags[text(n).slice(0, 100)] = text(n); },
  (n) => new ReadableStream({}, { highWaterMark: n }).getReader(),
  (n, m) => new ReadableStream({ pull(c) { c.enqueue(text(m)); } }, { highWaterMark: n, size: () => m }).getReader().read(),
  (n) => console.log(new Array(n)),
  (n, m) => console.log(hollow(n), text(m)),
  (n) => console.log('%' + n + 'd', n),
  // The engine.
  (n) => 'x'.repeat(n),
  (n) => 'ab'.repeat(1000).padStart(n, 'abc') + ''.padEnd(n),
  (n) => new ArrayBuffer(n),
  (n, m) => new ArrayBuffer(n, { maxByteLength: m }).resize(m),
  (n, m) => new ArrayBuffer(n).transfer(m),
  (n) => new SharedArrayBuffer(n),
  (n, m) => new DataView(new ArrayBuffer(n), m).setFloat64(m, n),
  (n, m) => new Float64Array(n).fill(m).subarray(n, m).set(new Uint8Array(m), n),
  (n, m) => new Uint8Array(hollow(n)).copyWithin(n, m),
  (n) => Array(n).join('ab'),
  (n) => Array.from(hollow(n)),
  (n, m) => Array(n).fill(m).sort().reverse(),
  (n, m) => Array.prototype.splice.call(hollow(n), m, n, 1),
  (n, m) => Array.prototype.concat.call([], Array(n), Array(m)),
  (n, m) => Array.prototype.with.call(hollow(n), m, 1),
  (n) => Array.prototype.toSorted.call(hollow(n)),
  (n) => Array(1000).fill(1).flat(n),
  (n) => Math.max.apply(null, hollow(n)),
  (n) => Reflect.construct(Array, hollow(n)),
  (n) => JSON.stringify({ a: { a: [1] } }, null, n),
  (n) => JSON.stringify(text(n)),
  (n) => JSON.parse('['.repeat(Math.min(n, 1e6))),
  (n, m) => (255).toString(n) + (1.5).toFixed(m) + (1.5).toPrecision(m) + (1.5).toExponential(m),
  (n) => 1n << BigInt(n),
  (n, m) => BigInt(n) ** BigInt(m),
  (n) => BigInt.asUintN(n, -1n),
  (n) => BigInt('9'.repeat(Math.min(n, 1e6))).toString(),
  (n, m) => new RegExp(`(a{${n}}){${m}}`).test(text(n)),
  (n) => new RegExp('('.repeat(Math.min(n, 1e5)) + 'a' + ')'.repeat(Math.min(n, 1e5))),
  (n) => text(n).replace(/x/g, '$&$&').split(''),
  (n) => text(n).normalize('NFKD').localeCompare(text(n)),
  (n) => new Date(n).toISOString() + new Date(n, n, n),
  (n) => Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0, Math.min(n, 1)),
  (n) => encodeURIComponent(text(n)) + escape(text(n)),
  (n) => new Map(Array.from({ length: Math.min(n, 1e5) }, (_, i) => [i, i])),
  (n) => structuredClone(new ArrayBuffer(n)),
  (n) => Object.groupBy(text(n), (c) => c),
  (n) => eval('['.repeat(Math.min(n, 1e5))),
  (n) => String.fromCodePoint(n) + String.raw({ raw: hollow(n) }),
  (n, m) => text(m).at(n) + text(m).substring(n, m) + text(m).slice(n),
  (n) => new Uint8Array(text(n).length).toBase64?.(),
];

export default async function () {
  const calls = JSON.parse(__ENV.VALUE);
  for (const [taker, n, m] of calls) {
    const take = takers[taker % takers.length];
    try {
      await take(sizes[n % sizes.length], sizes[m % sizes.length]);
    } catch (error) {
      console.log(error);
    }
  }
  return takers.length * sizes.length;
}
