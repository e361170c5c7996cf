import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { setupTimeout: '300ms' };
export function setup() { sleep(3); }
export default function () {
  console.log('not reached');
}
