import { check, group, sleep, fail, randomSeed } from 'k6';
group('x', () => {});
export default function () {
  
}
