import { sleep } from 'k6';
export const options = { iterations: 2, thresholds: { iterations: ['rate<4'] } };
export function setup() { sleep(0.3); }
export default function () {}
export function teardown() { sleep(0.3); }
export function handleSummary(data) { return { stdout: `${data.state.testRunDurationMs >= 600} ${data.metrics.iterations.values.rate < 4}\n` }; }
