// part of other scripts
export function twice(n) { return 2 * n; }
