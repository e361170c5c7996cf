// Without their system tags, groups and expected responses are not distinguished.
import { check, group } from 'k6';
import http from 'k6/http';

export const options = {
  systemTags: ['status', 'method', 'check'],
  thresholds: { 'checks{group:::g}': ['rate==1'], http_req_failed: ['rate<1'] },
};

export default function () {
  group('g', () => {
    check(http.get(`${__ENV.URL}/fast`), { got: (response) => response.status === 200 });
  });
}
