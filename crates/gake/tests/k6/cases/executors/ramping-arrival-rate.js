export const options = { scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ duration: '1s', target: 41 }], preAllocatedVUs: 5 } } };
export default function () {
  
}
