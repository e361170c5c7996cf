import { SharedArray } from 'k6/data';
const a = new SharedArray('users', () => [{ n: 'a' }, { n: 'b' }]);
export default function () {
  console.log(a.length, a[1].n, JSON.stringify(a), [...a].length); a[0].n = 'z'; console.log(a[0].n);
}
