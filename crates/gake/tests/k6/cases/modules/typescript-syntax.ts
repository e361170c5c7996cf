const a: number = 1;

const b: = 3;

export default function () {}
