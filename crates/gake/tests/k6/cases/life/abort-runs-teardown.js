import exec from 'k6/execution';
export default function () {
  exec.test.abort('stop');
}
export function teardown() { console.log('teardown'); }
