// part of modules/links
  export { one, nothing as something } from './lib.js';
