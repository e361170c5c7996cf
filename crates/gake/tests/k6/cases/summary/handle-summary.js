import { check, group, sleep, fail, randomSeed } from 'k6';
export default function () {
  check(1, { ok: true });
}
export function handleSummary(data) { return { stdout: Object.keys(data).sort().join() + ' ' + data.metrics.checks.values.passes + ' ' + data.metrics.checks.type + '\n' }; }
