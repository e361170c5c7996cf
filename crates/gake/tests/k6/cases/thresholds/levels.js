// Thresholds on the number of users, by the tags of the run.
import { sleep } from 'k6';
export const options = {
  vus: 2,
  duration: '2500ms',
  tags: { run: 'x' },
  thresholds: {
    vus: ['value>1'],
    'vus{run:x}': ['value==2'],
    'vus{run:y}': ['value==2'],
    vus_max: ['value<3'],
    'vus_max{run:x}': ['value==2'],
    'vus{scenario:default}': ['value>1'],
  },
};
export default () => { sleep(0.3); };
