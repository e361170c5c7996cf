// part of meta-resolve
export const text = open(import.meta.resolve("./data.txt"));
