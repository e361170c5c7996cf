// args: -u 1 -i 1
export const options = { scenarios: {} };
export default function () {}
