(native) => {
  /** A request as JSON. */
  const json = (request) => {
    if (request === undefined) native.fail("request cannot be nil");
    if (request === null) throw new TypeError("Cannot convert undefined or null to object");
    // JSON has no such numbers; that of Protocol Buffers writes them as strings, and so does k6.
    const exact = (_, value) => {
      return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
    };
    return JSON.stringify(request, exact);
  };

  class Client {
    #native = native.client();

    load(imports, ...names) {
      return JSON.parse(this.#native.load(imports ?? [], names));
    }

    loadProtoset(path) {
      return JSON.parse(this.#native.loadProtoset(String(path)));
    }

    connect(address, params) {
      return this.#native.connect(String(address), params ?? undefined);
    }

    invoke(method, request, params) {
      return this.#native.invoke(String(method ?? ""), json(request), params ?? undefined);
    }

    asyncInvoke(method, request, params) {
      return new Promise((resolve) => {
        const name = String(method ?? "");
        this.#native.invokeLater(name, json(request), params ?? undefined, resolve);
      });
    }

    healthCheck(service) {
      return this.#native.healthCheck(String(service ?? ""));
    }

    close() {
      this.#native.close();
    }
  }

  class Stream {
    constructor() {
      native.fail("gake does not support streams of gRPC yet");
    }
  }

  return { Client, Stream };
}
