import { sleep } from 'k6';
// Of five iterations each, the only user begins one.
export const options = {
  tags: { run: 'r' },
  scenarios: {
    shared: { executor: 'shared-iterations', vus: 1, iterations: 5, maxDuration: '1500ms', gracefulStop: '0s', tags: { own: 'o' } },
    open: { executor: 'constant-arrival-rate', rate: 5, duration: '1100ms', preAllocatedVUs: 1, gracefulStop: '0s', tags: { own: 'o' } },
  },
  thresholds: { 'dropped_iterations{run:r}': ['count>0'], 'dropped_iterations{own:o}': ['count>0'] },
};
export default () => sleep(3);
