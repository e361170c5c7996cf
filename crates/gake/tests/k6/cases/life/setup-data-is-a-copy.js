// args: -i 3
export function setup() { return { n: 0 }; }
export default function (data) { data.n++; console.log(data.n); }
export function teardown(data) { console.log('end', data.n); }
