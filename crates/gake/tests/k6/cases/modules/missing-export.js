// A name that a module does not export.

import http from 'k6/http';
import {
  twice,
  nothing,
} from './lib.js';

export default function () {
  nothing(http, twice);
}
