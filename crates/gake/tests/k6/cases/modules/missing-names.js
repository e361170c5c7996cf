import { check, absent } from 'k6';
import http, { nothing as never } from 'k6/http';
import * as encoding from 'k6/encoding';
import { b64encode } from 'k6/encoding';
export default function () {
  console.log(typeof check, absent == null, typeof http.get, never == null, typeof b64encode);
  console.log(Object.keys(encoding).sort().join(), typeof encoding.default);
}
