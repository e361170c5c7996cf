export function setup() { return { call() {} }; }
export default function () {}
