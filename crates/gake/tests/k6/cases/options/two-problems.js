export const options = {
  scenarios: {
    a: { executor: 'per-vu-iterations', exec: 'missing' },
    b: { executor: 'constant-arrival-rate', rate: 1, duration: '10ms', preAllocatedVUs: 1, exec: 'gone' },
  },
};

export default function () {}
