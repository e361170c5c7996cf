import http from 'k6/http';
import { check } from 'k6';

export default function () {
  http.get(`${__ENV.URL}/`);
}

// As scripts do that report to a chat.
export async function handleSummary(data) {
  const sent = http.post(`${__ENV.URL}/echo`, JSON.stringify({ count: data.metrics.http_reqs.values.count }));
  check(sent, { 'is sent': (response) => response.status === 200 });
  const later = await http.asyncRequest('GET', `${__ENV.URL}/`);
  const all = http.batch([`${__ENV.URL}/`, `${__ENV.URL}/status/404`]);
  return { stdout: `${sent.status} ${later.status} ${all.map((one) => one.status)}\n` };
}
