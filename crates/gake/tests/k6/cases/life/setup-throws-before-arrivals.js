export const options = { scenarios: { busy: { executor: 'constant-arrival-rate', rate: 100, duration: '1s', preAllocatedVUs: 1 } } };
export function setup() { throw new Error('no accounts'); }
export default function () {}
