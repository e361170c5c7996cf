console.log('init', typeof __ITER);
export default function () {
  for (const use of [() => require('k6'), () => open('x'), () => crypto.getRandomValues(new Float64Array(1)), () => { let x = null; x.y = 1; }, () => null.z]) {
    try { use(); } catch (e) { console.log(e.message); }
  }
  console.log(crypto.getRandomValues(new Uint8Array(3)).length);
}
