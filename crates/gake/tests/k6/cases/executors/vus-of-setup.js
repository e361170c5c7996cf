import { sleep } from 'k6';
export const options = { iterations: 1 };
export function setup() { sleep(1.2); }
export default function () {}
export function handleSummary(data) { return { stdout: `${JSON.stringify(data.metrics.vus.values)} ${JSON.stringify(data.metrics.vus_max.values)}\n` }; }
