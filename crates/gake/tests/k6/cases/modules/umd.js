import Library, { version } from './umd-library.js';
const required = require('./umd-library.js');
export default function () {
  const one = new Library('a;b;c');
  console.log(JSON.stringify(one.parse()), one.length, version, required === Library, Library[Symbol.for('kind')]);
}
