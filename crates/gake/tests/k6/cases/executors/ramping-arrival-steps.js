export const options = { scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 11, stages: [{ duration: '500ms', target: 11 }, { duration: '0s', target: 31 }, { duration: '500ms', target: 31 }], preAllocatedVUs: 5 } } };
export default function () {
  
}
