export const options = { vus: 3, iterations: 2 };
export default function () {
  console.log('ran');
}
