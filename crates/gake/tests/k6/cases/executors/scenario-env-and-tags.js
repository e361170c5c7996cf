import exec from 'k6/execution';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const hits = new Counter('hits');
export const options = { scenarios: { a: { executor: 'shared-iterations', env: { WHO: 'a' }, tags: { side: 'left' } }, b: { executor: 'shared-iterations', env: { WHO: 'b' }, tags: { side: 'right' }, startTime: '100ms' } }, thresholds: { 'hits{side:left}': ['count==1'], 'hits{side:right}': ['count==10'], 'hits{scenario:b}': ['count==10'] } };
export default function () {
  console.log(__ENV.WHO, exec.vu.tags.side); hits.add(__ENV.WHO === 'a' ? 1 : 10);
}
