import thing, { pick, text } from './bundle-library.js';
import * as all from './bundle-library.js';
export default function () {
  console.log(thing.kind, pick([1, 2]), text.length, Object.keys(all).sort().join());
}
