import { Counter, Rate, Trend } from 'k6/metrics';
const orders = new Counter('orders');
new Rate('accepted');
new Trend('waits', true);
export const options = {
  thresholds: {
    'orders{kind:big}': ['count>=0'],
    'accepted{kind:big}': [],
    'waits{kind:big}': ['p(95)<100'],
    'http_req_duration{name:start}': ['p(95)<1000'],
    'http_req_failed{name:start}': ['rate<0.1'],
  },
};
export default function () { orders.add(0, { kind: 'small' }); }
