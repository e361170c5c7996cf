export const options = { vus: 2, iterations: 2 };
if (__VU === 2) throw new Error('in init');
export default function () {}
