import { sleep } from 'k6';
const slow = { executor: 'constant-arrival-rate', rate: 10, duration: '1050ms', preAllocatedVUs: 1, gracefulStop: '3s' };
export const options = {
  scenarios: { slow, quick: { ...slow, rate: 1, exec: 'quick' } },
  thresholds: { 'dropped_iterations{scenario:slow}': ['count<1'], 'dropped_iterations{scenario:quick}': ['count<1'] },
};
export default function () { sleep(1.45); }
export function quick() {}
