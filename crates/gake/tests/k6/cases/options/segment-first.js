// args: --execution-segment 0:1/2
export const options = { vus: 3, iterations: 10 };
export default function () {
  
}
