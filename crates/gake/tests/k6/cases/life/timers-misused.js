function tried(name, f) {
  try {
    f();
    console.log(name, 'accepted');
  } catch (error) {
    console.log(name, `${error.name}: ${error.message}`);
  }
}

export default function () {
  for (const start of [setTimeout, setInterval]) {
    tried('nothing', () => start());
    tried('null', () => start(null, 1));
    tried('undefined', () => start(undefined, 1));
    tried('number', () => start(5, 1));
    tried('text', () => start('x', 1));
    tried('object', () => start({}, 1));
  }
  for (const delay of ['x', -5, null, undefined, '2', NaN]) {
    tried(`delay ${delay}`, () => setTimeout(() => console.log(`${delay} ran`), delay));
  }
  for (const stop of [clearTimeout, clearInterval]) {
    for (const timer of [undefined, null, 'x', 999, -1, {}]) tried(`stop ${timer}`, () => stop(timer));
  }
}
