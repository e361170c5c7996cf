// args: -u 2 -i 2
export function setup() { console.log('setup', __VU, typeof __ITER); return { a: [1, 'x'], d: new Date(0), u: undefined }; }
export default function (data) { console.log(data.a.join(), data.d, data.u); }
export function teardown(data) { console.log('teardown', Object.keys(data).sort().join()); }
