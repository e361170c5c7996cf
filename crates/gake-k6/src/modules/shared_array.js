// An immutable array proxy: each read creates its element anew.
(length, element) => {
  const freeze = (value) => {
    if (value !== null && typeof value === 'object') {
      Object.values(value).forEach(freeze);
      Object.freeze(value);
    }
    return value;
  };
  const place = (key) => {
    const at = typeof key === 'string' && /^\d+$/.test(key) ? Number(key) : -1;
    return at < length ? at : -1;
  };
  const refuse = () => {
    throw new TypeError('SharedArray is immutable');
  };
  return new Proxy([], {
    get(target, key, receiver) {
      if (key === 'length') return length;
      const at = place(key);
      return at < 0 ? Reflect.get(target, key, receiver) : freeze(element(at));
    },
    has: (target, key) => place(key) >= 0 || Reflect.has(target, key),
    ownKeys: () => [...Array(length).keys()].map(String).concat('length'),
    getOwnPropertyDescriptor(target, key) {
      if (key === 'length') return Reflect.getOwnPropertyDescriptor(target, key);
      const at = place(key);
      if (at < 0) return undefined;
      return { value: freeze(element(at)), enumerable: true, configurable: true, writable: true };
    },
    set: refuse,
    deleteProperty: refuse,
    defineProperty: refuse,
    setPrototypeOf: refuse,
  });
};
