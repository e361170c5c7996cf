// env: GAKE_K6_VERSION=1.8
// args: --summary-mode legacy
import { check, group, sleep, fail, randomSeed } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const t = new Trend('tt');
export default function () {
  t.add(3); group('g', () => { t.add(5); check(1, { ok: true, bad: false }); });
}
