export const options = { thresholds: { iterations: [{ threshold: 'count<1', abortOnFail: true }] } };
export default function () {}
