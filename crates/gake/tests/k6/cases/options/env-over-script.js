// env: K6_ITERATIONS=4
export const options = { vus: 1, duration: '10s' };
export default function () {
  
}
