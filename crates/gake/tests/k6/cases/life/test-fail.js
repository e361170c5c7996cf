import exec from 'k6/execution';
export default function () {
  exec.test.fail('bad'); console.log('goes on');
}
