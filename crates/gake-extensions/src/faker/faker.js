(native, seed) => {
  const nothing = () => undefined;
  const described = (value) => ({ value, enumerable: true, configurable: true });
  const readOnly = { set: () => false, deleteProperty: () => false, defineProperty: () => false };

  const category = (call, name) =>
    new Proxy(Object.create(null), {
      ...readOnly,
      get: (_, key) =>
        typeof key === "string" && native.has(name, key)
          ? (...values) => call(name, key, values)
          : undefined,
    });

  class Faker {
    constructor(seed) {
      const call = native.source(seed);
      return new Proxy(Object.create(null), {
        ...readOnly,
        get: (_, key) => {
          if (key === "call") return (name, ...values) => call("zen", String(name), values);
          return native.categories.includes(key) ? category(call, key) : nothing();
        },
        ownKeys: () => native.categories,
        getOwnPropertyDescriptor: (_, key) =>
          native.categories.includes(key) ? described(category(call, key)) : nothing(),
      });
    }
  }

  return { Faker, default: new Faker(seed) };
}
