import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
new Trend('t');
export default function () {
  
}
