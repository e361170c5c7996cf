import { sleep } from 'k6';
export { nothing } from './lib.js';

export default function () {
  sleep(0);
}
