// args: --execution-segment 0:1/3 --execution-segment-sequence 0,1/3,2/3,1
export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 5, iterations: 2 } } };
export default function () {
  
}
