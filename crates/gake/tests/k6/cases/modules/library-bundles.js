// args: --stage 1s:1,1s:1
// What bundled helpers, parsers and polyfills need: CommonJS in its forms, own checks, stages, random bytes.
import { check, between, parseSpan, stage, uuid } from './library-bundle.js';
import * as helpers from './library-bundle.js';
import rows, { Address } from './library-umd.js';
import exec from 'k6/execution';
const failure = (act) => { try { return act(); } catch (e) { return `${e.name}: ${e.message}`; } };
let isDone = false;
export default async function () {
  if (isDone) return new Promise((resolve) => setTimeout(resolve, 3000));
  isDone = true;
  console.log(Object.keys(helpers).sort().join());
  console.log([uuid(), uuid(true)].map((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)).join(), uuid() !== uuid());
  console.log(between('<a><b>', '<', '>').join(), between('x', '<', '>'), parseSpan('1h2m3.5s4ms'), failure(() => parseSpan('1m2m')), failure(() => parseSpan('3y')), failure(() => parseSpan('')));
  console.log(stage(), Object.keys(exec.test.options.scenarios).join());
  exec.vu.tags.stage = stage();
  console.log(exec.vu.tags.stage, typeof exec.scenario.startTime);
  console.log(check(5, { five: (n) => n === 5, six: false }, { of: 'sync' }), await check(Promise.resolve('a'), { 'is a': async (v) => v === 'a', given: Promise.resolve(true) }));
  console.log(JSON.stringify(rows.facts), typeof rows.parse);
  console.log(JSON.stringify(rows.parse('\ufeffname,n,ok\r\n"a ""b"", c",1.5e2,true\nd,,x\n', { header: true, dynamicTyping: true })));
  const url = new Address('https://u:p@Example.COM:443/ä b/?q=1&z=%C3%A9+x&a=(~)#f');
  url.searchParams.append('new', "it's");
  url.searchParams.sort();
  console.log(String(url), url.searchParams.get('z'), url.searchParams.get('none'), [...url.searchParams].length, Object.prototype.toString.call(url.searchParams));
  console.log(String(new Address('/x?y', 'http://h:81/')), failure(() => new Address('nothing')));
}
