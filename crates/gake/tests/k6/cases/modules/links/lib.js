// part of modules/links
(globalThis.order ??= []).push('lib');
export const one = 1;
