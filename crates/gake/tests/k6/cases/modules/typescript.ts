// args: -i 2
import { check, sleep } from 'k6';
import http, { RefinedResponse, ResponseType } from 'k6/http';
import { Options } from 'k6/options';
import { Counter } from 'k6/metrics';
import type { Order } from './typescript-library.ts';
import { type Basket, Kind, Shop, sum } from './typescript-library.ts';

export const options: Options = {
  thresholds: { checks: ['rate==1'], orders: ['count>0'] },
};

const orders = new Counter('orders');

abstract class Base<T> {
  declare gone: T;
  kept: string;
  protected readonly list: T[] = [];
  constructor(private readonly name: string, public size?: number) {}
  abstract add(item: T): this;
}

class Cart extends Base<Order> implements Basket {
  static made = 0;
  add(item: Order): this;
  add(item: any) {
    this.list.push(item as Order);
    return this;
  }
  get total(): number { return sum(this.list.map(({ price }: Order): number => price)); }
}

enum Level { Low = 1, Middle, High = 1 << 4, Next, Text = 'text' }
const enum Hidden { A = 'a', B = 3 }

namespace Tools {
  export const factor: number = 2;
  export function double(n: number): number { return n * factor; }
  export namespace Deep { export const name = 'deep'; }
  export interface Nothing { a: string }
}

namespace Types { export type A = string; }

const later = async <T,>(value: T): Promise<T> => value;

export function setup(): { orders: Order[] } {
  return { orders: [{ price: 3 }, { price: 4, kind: Kind.Gift }] satisfies Order[] };
}

export default async function (data: { orders: Order[] }): Promise<void> {
  const cart = new Cart('a', 5);
  for (const order of data.orders!) cart.add(order);
  orders.add(cart.total);
  const response: RefinedResponse<ResponseType> = http.get(`${__ENV.URL}/fast`);
  check(response, { 'is 200': (r) => r.status === 200, 'total': () => cart.total === 7 });
  console.log(cart.total, cart.size, Object.keys(cart).join());
  console.log(Level.High, Level[17], Level.Text, Hidden.B, JSON.stringify(Level));
  console.log(Tools.double(21), Tools.Deep.name, typeof Types, Shop.open(<any>'x'));
  console.log(await later<number>(Cart.made));
  sleep(0);
}
