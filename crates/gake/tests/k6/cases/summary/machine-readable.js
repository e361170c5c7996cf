// args: --new-machine-readable-summary
import { check, group, sleep } from 'k6';
import { Gauge, Rate, Trend } from 'k6/metrics';

const level = new Gauge('level');
const share = new Rate('share');
const took = new Trend('took', true);

export const options = { iterations: 2, thresholds: { 'took{a:b}': ['max<9'] } };

export default function () {
  check(1, { one: true, two: (n) => n > 1 });
  group('inner', () => check(2, { one: true }));
  level.add(-3);
  share.add(true);
  took.add(5, { a: 'b' });
}

export function handleSummary(whole) {
  // Without the functions that k6's have.
  const data = JSON.parse(JSON.stringify(whole));
  const { config, metadata, results, version } = data;
  const shape = (metric) =>
    `${metric.name} ${Object.keys(metric)} ${metric.type} ${metric.contains} ${Object.keys(metric.values)}`;
  const figures = results.metrics.filter((m) => !/^(data_|iteration_|vus)/.test(m.name));
  const lines = [
    Object.keys(data), Object.keys(config), Object.keys(metadata), Object.keys(results),
    config.execution, typeof config.duration, config.script.includes('handleSummary'), version,
    JSON.stringify(results.checks),
    ...results.metrics.filter((m) => !/^vus/.test(m.name)).map(shape).sort(),
    ...figures.map((m) => JSON.stringify(m)).sort(),
  ];
  return { stdout: lines.join('\n') + '\n' };
}
