// args: --vus 1 --iterations 1
import http from 'k6/http';
import { check, group } from 'k6';

// Neither checks nor groups have names, and no request is known to be expected.
export const options = {
  systemTags: ['status', 'method'],
  thresholds: { 'http_reqs{group:::G}': ['count==0'], 'http_reqs{status:200}': ['count==1'] },
};

export default function () {
  check(1, { root: () => true });
  group('G', () => {
    check(1, { inner: () => true, bad: () => false });
    http.get(`${__ENV.URL}/`);
  });
}
