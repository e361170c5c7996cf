// env: K6_AUTO_EXTENSION_RESOLUTION=false
import first from 'k6/nothing-such';
import timers from 'k6/experimental/timers';
import { second, third } from 'k6/another';
import again from 'k6/nothing-such';

console.log('not reached');
export default function () {}
