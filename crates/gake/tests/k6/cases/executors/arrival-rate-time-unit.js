export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 4, timeUnit: '200ms', duration: '1030ms', preAllocatedVUs: 3 } } };
export default function () {
  
}
