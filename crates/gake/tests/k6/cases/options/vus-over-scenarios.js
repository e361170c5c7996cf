export const options = { vus: 2, scenarios: { a: { executor: 'per-vu-iterations', iterations: 5, exec: 'other' } } };
export function other() {}
export default function () {}
