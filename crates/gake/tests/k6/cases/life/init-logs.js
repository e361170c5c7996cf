// args: -u 2 -i 2
console.log('init', __VU);
export default function () {
  console.log('iteration');
}
