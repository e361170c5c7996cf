(native) => {
  /** A request as JSON. */
  const json = (request) => {
    if (request === undefined) native.fail("request cannot be nil");
    if (request === null) throw new TypeError("Cannot convert undefined or null to object");
    // Protobuf's JSON, and k6, write infinities and NaN as strings.
    const exact = (_, value) => {
      return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
    };
    return JSON.stringify(request, exact);
  };

  let openStream;

  class Client {
    #native = native.client();

    static {
      openStream = (client, method, params) => {
        if (client === null || typeof client !== "object" || !(#native in client)) {
          native.fail("invalid GRPC Stream's client: not a GRPC client");
        }
        return client.#native.stream(method, params);
      };
    }

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
    #native;
    #listeners = { data: [], error: [], end: [] };
    #isWriting = true;

    constructor(client, method, params) {
      this.#native = openStream(client, String(method ?? ""), params ?? undefined);
      this.#listen();
    }

    on(event, handler) {
      if (typeof handler !== "function") {
        native.fail(`handler for "${event}" event isn't a callable function`);
      }
      if (Object.hasOwn(this.#listeners, event)) this.#listeners[event].push(native.bind(handler));
      else native.warn(`can't register ${event} event handler: unknown GRPC stream's event type: ${event}`);
    }

    write(message) {
      if (!this.#isWriting) return;
      if (message === undefined || message === null) this.#native.warn("can't send empty message");
      else this.#native.write(json(message));
    }

    end() {
      if (!this.#isWriting) return;
      this.#isWriting = false;
      this.#native.end();
    }

    #listen() {
      this.#native.next((event, details) => {
        if (event === "end") this.#isWriting = false;
        else this.#listen();
        const listeners = this.#listeners[event];
        if (event === "error" && listeners.length === 0) {
          this.#native.warn(`no handlers for error registered, but an error happened: ${details.message}`);
        }
        for (const listener of listeners) listener(details);
      });
    }
  }

  return { Client, Stream };
}
