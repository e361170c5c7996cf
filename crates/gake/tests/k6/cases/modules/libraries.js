// What assertion and instrumentation libraries need: names of callers, tests that fail and go on.
import exec from 'k6/execution';
import http from 'k6/http';
import { check, group } from 'k6';
const where = () => {
  const frames = new Error('x').stack.split('\n').filter((line) => line.includes('at '));
  const found = /at (\S+) \((?:file:\/\/)?(.*):(\d+):(\d+)/.exec(frames[1]);
  return [found[1], found[2].split('/').pop(), found[3]].join(' ');
};
class AssertionError extends Error {
  constructor(message) { super(message); this.name = 'AssertionError'; }
}
function instrumented(method) {
  const before = http[method];
  return (url, params) => before.call(http, url, { ...params, headers: { ...(params || {}).headers, traceparent: '00-1-2-01' } });
}
export default async function () {
  console.log(where());
  try { throw new AssertionError('no'); } catch (e) { console.log(e.name, e.message, e instanceof AssertionError, String(e)); }
  const r = instrumented('get')(`${__ENV.URL}/echo`, { headers: { a: 'b' } });
  console.log(Object.keys(r.request.headers).sort().join());
  group('described', () => { check(null, { 'expect a to equal b': false }); });
  exec.vu.metrics.tags.stage = '0';
  exec.vu.tags.profile = 'steady';
  console.log(exec.vu.tags.stage, exec.vu.metrics.tags.profile);
  exec.test.fail('a soft assertion');
  console.log('goes on');
  await Promise.resolve();
  exec.test.abort('a hard assertion');
}
