import { sleep } from 'k6';
export const options = { iterations: 1 };
export function setup() { sleep(1.2); }
export default function () {}
export function handleSummary(data) {
  const { vus, vus_max } = data.metrics;
  return { stdout: `${vus.values.value} ${vus.values.max} ${vus_max.values.value} ${vus_max.values.min}\n` };
}
