import { Counter } from 'k6/metrics';
const orders = new Counter('orders');
export const options = { thresholds: { orders: ['count>5'] } };
export default function () { orders.add(1); }
export function handleSummary(data) {
  return {
    stdout: `orders: ${data.metrics.orders.values.count} \u001b[32mgreen\u001b[0m\n`,
    'no/such/folder/summary.json': JSON.stringify(data),
    'summary.txt': 'written',
    'neither/this.html': '<html></html>',
  };
}
