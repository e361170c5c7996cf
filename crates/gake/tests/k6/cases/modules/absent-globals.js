export default function () {
  console.log(typeof fetch, typeof URL, typeof FormData, typeof window, typeof process, typeof global, typeof globalThis);
}
