const library = require('./common-js-library.js');
import plain from './common-js-library.js';
import { count } from './common-js-library.js';
export default function () {
  console.log(library.count(), count(), library.kind, library.same, library.self, plain === library, plain === library.default);
}
