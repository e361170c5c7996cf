import { check } from 'k6';
class Base { #secret = 1; static made = 0; get secret() { return this.#secret; } static { Base.made += 1; } }
class Failure extends Error { constructor(why) { super(why); this.name = 'Failure'; } }
function* numbers() { yield* [1, 2]; return 3; }
const proxy = new Proxy({}, { get: (_, name) => `got ${String(name)}` });
export default async function () {
  const [, year, month] = /(\d{4})-(\d\d)/.exec('on 2026-11');
  const bag = { a: { b: null } };
  bag.c ??= [...numbers()];
  const tagged = ((strings, ...values) => strings.raw.join('|') + values)`x${1}\n${2}`;
  const settled = await Promise.allSettled([Promise.resolve(1), Promise.reject(new Failure('no'))]);
  check(null, {
    'groups': () => year + month === '202611',
    'optional chaining': () => bag.a?.b?.c === undefined && bag.c.at(-1) === 2,
    'private fields': () => new Base().secret === 1 && Base.made === 1,
    'subclass of Error': () => settled[1].reason instanceof Failure && settled[1].reason.message === 'no',
    'proxies': () => proxy.thing === 'got thing',
    'lookbehind': () => 'a1b2'.replace(/(?<=b)\d/, 'x') === 'a1bx',
    'flat': () => [1, [2, [3]]].flat(Infinity).length === 3 && Object.fromEntries([['a', 1]]).a === 1,
    'sort is stable': () => [[1, 'a'], [0, 'b'], [1, 'c']].sort((a, b) => a[0] - b[0]).map((x) => x[1]).join('') === 'bac',
    'replaceAll': () => 'a-b-c'.replaceAll('-', '+') === 'a+b+c' && 'x'.padStart(3, '-') === '--x',
    'dates': () => new Date(0).toISOString() === '1970-01-01T00:00:00.000Z',
  });
  console.log(tagged, new Intl_().name, [..."a😀"].length, `${[1, 2]}`, JSON.stringify({ d: new Date(NaN), u: undefined, n: -0 }));
}
class Intl_ { get name() { return Object.prototype.toString.call(null); } }
