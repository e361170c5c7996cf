import { twice } from './lib.js';
export default function () {
  console.log(twice(21));
}
