// args: -i 2
export const options = { scenarios: { a: { executor: 'constant-vus', duration: '10s' } } };
export default function () {
  
}
