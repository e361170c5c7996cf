export function setup() { Promise.reject(new Error('aside')); }
export default function () { console.log('never'); }
