  export { one, nothing as something } from './lib.js';
