// Paths of `open` are relative to the module whose own code runs.
import { SharedArray } from 'k6/data';
import { own, read } from './reader/reader.js';
import { whole, read as readRequired } from './reader/required.js';

const shared = new SharedArray('rows', () => [read('./open.txt')]);
const seen = [own, read('./open.txt'), whole, readRequired(), shared[0], read(import.meta.resolve('./reader/own.txt'))];
let missing;
try {
  read('own.txt');
} catch (error) {
  missing = error.message;
}

export default function () {
  console.log(JSON.stringify(seen), missing);
}
