// part of typescript.ts
export interface Order { price: number; kind?: Kind }
export type Basket = { total: number };
export enum Kind { Plain, Gift }
export const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
export namespace Shop {
  let opened = 0;
  export function open(name: string): string { return `${name}${++opened}`; }
}
