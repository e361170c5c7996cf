import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
export default function () {
  new Counter('late');
}
