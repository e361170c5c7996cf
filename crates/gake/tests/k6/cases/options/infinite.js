export const options = { vus: 1, iterations: 1, ext: { limits: [1, -1 / 0, NaN] } };

export default function () {}
