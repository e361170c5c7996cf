import { check, group, sleep, fail, randomSeed } from 'k6';
export const options = { teardownTimeout: '300ms' };
export default function () {
  
}
export function teardown() { sleep(3); }
