// Users of an arrival rate are active while they run an iteration.
import { sleep } from 'k6';
export const options = {
  scenarios: {
    a: {
      executor: 'constant-arrival-rate', rate: 20, timeUnit: '1s', duration: '3425ms',
      preAllocatedVUs: 40,
    },
  },
  thresholds: { vus: ['value>6', 'value<14'], vus_max: ['value==40'] },
};
export default () => { sleep(0.5); };
