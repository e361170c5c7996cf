export const options = { blockHostnames: ['a*b'] };
export default function () {}
