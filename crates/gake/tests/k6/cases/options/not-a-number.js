export const options = { vus: 1, iterations: parseInt(__ENV.NOTHING, 10) };

export default function () {}
