export async function setup() { throw new Error('no setup'); }
export default function () {}
