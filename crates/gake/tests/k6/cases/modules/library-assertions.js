// What chainable assertions and one-time passwords need: proxies, getters, groups that fail, HMAC of a counter.
import exec from 'k6/execution';
import { check, group } from 'k6';
class Failed extends Error {
  constructor(message, facts, start) {
    super(message); Object.assign(this, facts); this.name = 'AssertionError';
    if (Error.captureStackTrace) Error.captureStackTrace(this, start || Failed);
  }
  toJSON() { return { name: this.name, message: this.message, showDiff: this.showDiff }; }
}
const flags = new WeakMap();
function Assertion(value, message) { flags.set(this, { value, message }); return guarded(this); }
const guarded = (object) => new Proxy(object, {
  get(target, name, receiver) {
    if (typeof name === 'string' && !Reflect.has(target, name) && !['then', 'toJSON'].includes(name)) throw new Error(`Invalid property: ${name}`);
    return Reflect.get(target, name, receiver);
  },
});
const flag = (object, key, value) => { const own = flags.get(object.__self); if (value === undefined) return own[key]; own[key] = value; return object; };
Object.defineProperty(Assertion.prototype, '__self', { get() { return this.self ?? this; } });
for (const word of ['to', 'be', 'have', 'that', 'and', 'with']) Object.defineProperty(Assertion.prototype, word, { get() { return this; }, configurable: true });
Object.defineProperty(Assertion.prototype, 'not', { get() { return this.negate(); }, configurable: true });
const typeName = (value) => Object.prototype.toString.call(value).slice(8, -1);
const inspect = (value) => (typeof value === 'string' ? `'${value}'` : typeof value === 'function' ? `[Function ${value.name || 'anonymous'}]` : Array.isArray(value) ? `[ ${value.map(inspect).join(', ')} ]` : value instanceof Map ? `Map(${value.size})` : value && typeof value === 'object' ? `{ ${Object.keys(value).concat(Object.getOwnPropertySymbols(value).map(String)).map((k) => `${k}: ${inspect(value[k])}`).join(', ')} }` : String(value));
const same = (a, b) => Object.is(a, b) || (a && b && typeof a === 'object' && typeName(a) === typeName(b) && (a instanceof Date ? +a === +b : ArrayBuffer.isView(a) ? a.every((x, i) => x === b[i]) : Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((k) => same(a[k], b[k]))));
function expectThat(value, message) {
  let isNot = false;
  const judge = (ok, text, actual, expected) => {
    const said = `expected ${inspect(value)} ${isNot ? 'not ' : ''}${text}`;
    const passed = isNot ? !ok : Boolean(ok);
    check(null, { [message ? `${message}: ${said}` : said]: passed });
    if (!passed) throw new Failed(said, { actual, expected, showDiff: true }, expectThat);
    return chain;
  };
  const methods = {
    equal: (other) => judge(value === other, `to equal ${inspect(other)}`, value, other),
    eql: (other) => judge(same(value, other), `to deeply equal ${inspect(other)}`, value, other),
    a: (type) => judge(typeName(value).toLowerCase() === type, `to be a ${type}`),
    match: (pattern) => judge(pattern.test(value), `to match ${pattern}`),
    above: (n) => judge(value > n, `to be above ${n}`),
    negate: () => { isNot = !isNot; return chain; },
  };
  const chain = new Assertion(value, message);
  for (const [name, method] of Object.entries(methods)) Object.defineProperty(chain, name, { value: method });
  return chain;
}
function describe(name, act) {
  let isFine = true;
  group(name, () => {
    try { act({ tags: exec.vu.tags.group }); } catch (error) {
      isFine = false;
      if (error.name !== 'AssertionError') { console.error(`Exception raised in test "${name}". Failing the test and continuing. ${error}`); check(null, { [`Exception raised "${error}"`]: false }); } else console.warn(`${name}: ${error.message} ${JSON.stringify(error)} ${error instanceof Failed}`);
    }
  });
  return isFine;
}
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
function decoded(text) {
  let [bits, value] = [0, 0]; const bytes = [];
  for (const c of text.toUpperCase().replace(/=+$/, '')) {
    const digit = ALPHABET.indexOf(c); if (digit < 0) throw new TypeError(`Invalid character ${c}`);
    value = (value << 5) | digit; bits += 5;
    if (bits >= 8) { bytes.push((value >>> (bits - 8)) & 255); bits -= 8; }
  }
  return new Uint8Array(bytes);
}
async function password(secret, seconds, digits = 6) {
  const counter = new DataView(new ArrayBuffer(8)); counter.setUint32(4, Math.floor(seconds / 30), false);
  const key = await crypto.subtle.importKey('raw', decoded(secret), { name: 'HMAC', hash: { name: 'SHA-1' } }, false, ['sign']);
  const mac = new DataView(await crypto.subtle.sign('HMAC', key, counter.buffer));
  const at = mac.getUint8(mac.byteLength - 1) & 15;
  return String((mac.getUint32(at, false) & 0x7fffffff) % 10 ** digits).padStart(digits, '0');
}
export default async function () {
  console.log(describe('fine', (t) => { expectThat(1 + 1).to.equal(2); expectThat({ a: [1, new Date(0)] }).to.eql({ a: [1, new Date(0)] }); expectThat('text').to.be.a('string').and.match(/^t/); expectThat(2).to.not.equal(3); console.log(t.tags); }));
  console.log(describe('fails', () => { expectThat(new Uint8Array([1]), 'bytes').to.eql(new Uint8Array([2])); }), describe('throws', () => { null.x; }), describe('misspelt', () => { expectThat(1).to.eqaul(1); }));
  console.log([[], new Map(), null, undefined, () => 1, Symbol('s'), 1n, new Error('e'), new Proxy([], {}), (function () { return arguments; })()].map(typeName).join());
  for (const seconds of [59, 1111111109, 1234567890]) console.log(await password('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', seconds, 8));
  await password('1', 0).catch((e) => console.log(`${e}`));
}
