import { group } from 'k6';
import { Counter } from 'k6/metrics';
const steps = new Counter('steps');
export function setup() { steps.add(1); }
export default function () { group('empty', () => {}); }
export function teardown() { group('in', () => steps.add(1)); }
