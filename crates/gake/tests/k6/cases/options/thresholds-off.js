// args: --no-thresholds
import { Counter } from 'k6/metrics';
const orders = new Counter('orders');
export const options = { thresholds: { 'orders{kind:a}': ['count<1'], 'orders{kind:b}': ['count<1'], orders: ['count<1'] } };
export default function () { orders.add(1, { kind: 'a' }); }
