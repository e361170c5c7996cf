import { check, group, sleep, fail, randomSeed } from 'k6';
sleep(0.01);
export default function () {
  console.log('ran');
}
