export const options = { thresholds: { iteration_duration: ['p(101)<5'] } };
export default function () {}
