// part of other scripts
console.log('evaluated');
export const nothing = null;
