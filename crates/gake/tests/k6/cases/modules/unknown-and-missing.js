import first from 'k6/nothing-such';
import second from './not-there.js';

export default function () {}
