import { boom } from './mapped-library.js';
const { fail } = require('./unmapped-library.js');
export const options = { iterations: 2 };
export default function () {
  if (__ITER === 0) boom();
  fail();
}
