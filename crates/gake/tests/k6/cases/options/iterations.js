export const options = { vus: 2, iterations: 5 };
export default function () {
  
}
