export const options = {
  scenarios: {
    s: { executor: 'constant-arrival-rate', rate: 1, duration: '10ms', preAllocatedVUs: 1, exec: 'gone' },
  },
};

export default function () {}
