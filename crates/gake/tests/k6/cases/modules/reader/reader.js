// part of open-elsewhere.js
export const own = open('./own.txt').trim();

export function read(name) {
  return open(name).trim();
}
