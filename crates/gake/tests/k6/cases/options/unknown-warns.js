export const options = { vus: 1, iterations: 1, nonsense: true };
export default function () {
  
}
