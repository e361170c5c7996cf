export const options = { VUS: 2, Iterations: 4 };
export default function () {
  
}
