// A threshold on the number of users ends the test early.
import { sleep } from 'k6';
export const options = {
  vus: 2,
  duration: '30s',
  thresholds: { vus: [{ threshold: 'value<2', abortOnFail: true }] },
};
export default () => { sleep(60); };
