import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
new Counter('http_reqs');
export default function () {
  
}
