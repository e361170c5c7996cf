export const options = { thresholds: { checks: ['rate>0.5'] } };
export default function () {}
