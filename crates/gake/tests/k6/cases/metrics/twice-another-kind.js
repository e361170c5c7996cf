import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
new Counter('same');
new Rate('same');
export default function () {
  
}
