import { check } from 'k6';

const early = await Promise.resolve(7);
const later = await (async () => { await null; return early + 1; })();

export default function () {
  check(null, { 'it waited': () => early === 7 && later === 8 });
}
