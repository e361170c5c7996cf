import { SharedArray } from 'k6/data';
import { Trend } from 'k6/metrics';
const shared = new SharedArray('shared', () => [{ a: 1 }, { b: 2 }]);
const waits = new Trend('waits');
export default function () {
  console.log({ 'Content-Type': 'text/plain', 'two words': 1, '': 2, 7: 3 });
  console.log(new Uint8Array([1, 2]), new Float64Array([1.5]), new Uint8Array(), [new Uint8Array([1])]);
  console.log(new ArrayBuffer(2), { bytes: new Uint8Array([255, 10]).buffer }, new ArrayBuffer(0), new DataView(new ArrayBuffer(1)));
  const self = { name: 'self' };
  self.self = self;
  self.list = [self];
  console.log(self);
  const twice = { x: 1 };
  console.log([twice, twice]);
  console.log(shared, { shared });
  console.log(JSON.stringify(waits), waits.name);
  console.log('');
  console.log({ symbol: Symbol('s'), nothing: undefined, call: () => 1 });
}
