import lib from 'https://127.0.0.1:1/lib.js';

export default function () {
  lib();
}
