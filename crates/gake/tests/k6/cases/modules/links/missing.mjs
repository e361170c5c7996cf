import { one } from './lib.js';   import { nothing } from './lib.js';
export default [one, nothing];
