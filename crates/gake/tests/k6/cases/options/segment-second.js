// args: --execution-segment 1/2:1
export const options = { vus: 3, iterations: 10 };
export default function () {
  
}
