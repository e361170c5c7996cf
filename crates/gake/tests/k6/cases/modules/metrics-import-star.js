import * as metrics from 'k6/metrics';
const c = new metrics.Counter('cc');
export default function () {
  c.add(2);
}
