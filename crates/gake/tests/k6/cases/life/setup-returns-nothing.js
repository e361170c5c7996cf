export function setup() {}
export default function (data) { console.log(typeof data, data); }
export function teardown(data) { console.log('teardown', typeof data); }
