import './logs.js';
import { setTimeout as later } from 'k6/experimental/timers';
import * as all from 'k6/experimental/grpc';

console.log('not reached');
export default function () {}
