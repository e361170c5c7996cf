import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
new Trend('my trend');
export default function () {
  
}
