// Init code runs for all users before setup.
export const options = { vus: 1, iterations: 1 };

console.log('init', __VU);

export function setup() {
  console.log('setup');
  return 1;
}

export default function () {
  console.log('iteration');
}

export function teardown() {
  console.log('teardown');
}
