export const options = {
  iterations: 1,
  scenarios: { s: { executor: 'constant-vus', duration: '10ms', exec: 'missing' } },
  thresholds: { 'checks{group:::a}': ['med<5'] },
};

export default function () {}
