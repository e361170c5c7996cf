import { check } from 'k6';
import { even } from './circular-even.js';

export default function () {
  check(null, {
    'they call each other': () => even(10) === true && even(7) === false,
  });
}
