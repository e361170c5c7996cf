export function setup() {
  return {
    map: new Map([[1, 2]]), set: new Set(['a']), bytes: new Uint8Array([1, 2]), big: 10n,
    date: new Date(1500), none: [undefined, null], nested: { deep: [{ a: true }] },
  };
}
export default function (data) {
  for (const key of Object.keys(data).sort()) console.log(key, JSON.stringify(data[key]));
}
