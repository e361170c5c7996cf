export default function () {
  console.log(__VU, __ITER);
}
