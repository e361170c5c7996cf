// args: -i 5
import exec from 'k6/execution';
export default function () {
  if (__ITER === 2) exec.test.abort(); console.log(__ITER);
}
