import { first } from './circular-first.js';

export default function () {
  console.log(first);
}
