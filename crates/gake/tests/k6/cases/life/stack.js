function inner() { throw new RangeError('deep'); }
function outer() { inner(); }
export default function () {
  outer();
}
