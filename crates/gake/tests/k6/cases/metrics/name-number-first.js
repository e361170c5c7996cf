import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
new Trend('1trend');
export default function () {
  
}
