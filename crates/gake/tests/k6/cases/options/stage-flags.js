// args: -s 300ms:1 -s 300ms:1
import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  sleep(0.25);
}
