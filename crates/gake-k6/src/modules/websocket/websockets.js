(native) => {
  const CONNECTING = 0;
  const OPEN = 1;
  const CLOSING = 2;
  const CLOSED = 3;

  const EVENTS = ["open", "message", "error", "close", "ping", "pong"];

  const encoded = (part) => {
    if (part instanceof Blob) return part.bytesNow();
    if (part instanceof ArrayBuffer) return new Uint8Array(part.slice(0));
    if (ArrayBuffer.isView(part)) {
      return new Uint8Array(part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength));
    }
    return new Uint8Array(native.encoded(String(part)));
  };

  /** Immutable bytes. */
  class Blob {
    #bytes;
    #type;

    constructor(parts = [], options = {}) {
      const all = parts.map(encoded);
      this.#bytes = new Uint8Array(all.reduce((size, part) => size + part.length, 0));
      let at = 0;
      for (const part of all) {
        this.#bytes.set(part, at);
        at += part.length;
      }
      this.#type = options.type ?? "";
    }

    get size() {
      return this.#bytes.length;
    }

    get type() {
      return this.#type;
    }

    bytesNow() {
      return this.#bytes.slice();
    }

    async bytes() {
      return this.#bytes.slice();
    }

    async arrayBuffer() {
      return this.#bytes.slice().buffer;
    }

    async text() {
      return native.decoded(this.#bytes.slice().buffer);
    }

    slice(from, to, type) {
      return new Blob([this.#bytes.slice(from, to)], { type });
    }
  }

  class WebSocket {
    #url;
    #session;
    #state = CONNECTING;
    #protocol = "";
    #binaryType = "blob";
    #listeners = new Map();
    #handlers = new Map();

    constructor(url, protocols, params) {
      native.notInInit();
      if (url === undefined) native.fail("WebSocket requires a url");
      this.#url = String(url);
      const scheme = this.#url.split(":", 1)[0];
      if (scheme !== "ws" && scheme !== "wss") {
        native.fail(`WebSocket requires url with scheme ws or wss, but got "${scheme}"`);
      }
      const at = this.#url.indexOf("#");
      if (at >= 0) {
        native.fail(`WebSocket requires no url fragment, but got "${this.#url.slice(at + 1)}"`);
      }
      const offered = protocols === undefined || protocols === null ? [] : [protocols].flat();
      native.openLater(this.#url, offered.map(String), params, (opened) => this.#opened(opened));
    }

    get url() {
      return this.#url;
    }

    get readyState() {
      return this.#state;
    }

    get bufferedAmount() {
      return this.#session ? this.#session.unsent() : 0;
    }

    get extensions() {
      return [];
    }

    get protocol() {
      return this.#protocol;
    }

    get binaryType() {
      return this.#binaryType;
    }

    set binaryType(type) {
      if (type !== "blob" && type !== "arraybuffer") {
        native.fail(`unknown binaryType ${type}, the supported ones are "blob" and "arraybuffer"`);
      }
      this.#binaryType = type;
    }

    addEventListener(type, listener) {
      if (!EVENTS.includes(type)) {
        native.warn(`can't add event handler: unknown event type: ${type}`);
        return;
      }
      if (typeof listener !== "function") {
        native.fail(`handler for event type "${type}" isn't a callable function`);
      }
      const known = this.#listeners.get(type);
      const bound = native.bind(listener);
      if (known) known.push(bound);
      else this.#listeners.set(type, [bound]);
    }

    send(data) {
      this.#isOpen("send");
      this.#session.send(data instanceof Blob ? data.bytesNow() : data);
      this.#session.sent();
    }

    ping() {
      this.#isOpen("ping");
      this.#session.ping();
      this.#session.sent();
    }

    close(code, reason) {
      if (this.#state === CLOSING || this.#state === CLOSED) return;
      if (code && code !== 1000 && !(code >= 3000 && code <= 4999)) {
        native.failIn(
          "close",
          "InvalidAccessError: Failed to execute 'close' on 'WebSocket': The close code must be " +
            `either 1000, or between 3000 and 4999. ${code} is neither`,
        );
      }
      const wasOpen = this.#state === OPEN;
      this.#state = CLOSING;
      if (wasOpen) {
        this.#session.close(code || 1000, String(reason ?? ""));
        this.#session.sent();
      }
    }

    #isOpen(method) {
      if (this.#state !== OPEN) native.failIn(method, "InvalidStateError");
    }

    #opened({ session, response, error }) {
      if (!session) {
        this.#shut(error);
        return;
      }
      this.#session = session;
      if (this.#state === CLOSING) {
        session.close(1000);
      } else {
        this.#state = OPEN;
        this.#protocol = response.headers["Sec-Websocket-Protocol"] ?? "";
      }
      // Before handlers run: one that throws ends the iteration, but not the session.
      this.#listen();
      if (this.#state === OPEN) this.#fire("open");
    }

    #listen() {
      this.#session.nextLater((event) => {
        if (event.type === "closed") {
          if (this.#state === OPEN) this.#session.close(event.code === 1006 ? 1001 : event.code);
          this.#shut(event.error, { code: event.code, reason: event.reason ?? "" });
          return;
        }
        this.#listen();
        if (event.type === "message" || event.type === "binaryMessage") {
          // As in k6, a message after close() is neither counted nor delivered.
          if (this.#state !== OPEN) return;
          this.#session.received();
          this.#fire("message", { data: this.#data(event), origin: "" });
        } else {
          this.#fire(event.type);
        }
      });
    }

    #data({ type, data }) {
      return type === "binaryMessage" && this.#binaryType === "blob" ? new Blob([data]) : data;
    }

    #shut(error, details = {}) {
      this.#state = CLOSED;
      this.#session?.end();
      if (error) this.#fire("error", { error });
      this.#fire("close", details);
    }

    #fire(type, details = {}) {
      const event = { type, target: this, timestamp: native.unixMillis(), ...details };
      const handler = this.#handlers.get(type);
      const all = handler ? [handler.bound] : [];
      for (const listener of all.concat(this.#listeners.get(type) ?? [])) listener(event);
    }

    static #on(type) {
      Object.defineProperty(WebSocket.prototype, `on${type}`, {
        get() {
          return this.#handlers.get(type)?.handler ?? null;
        },
        set(handler) {
          if (typeof handler === "function") {
            this.#handlers.set(type, { handler, bound: native.bind(handler) });
          } else this.#handlers.delete(type);
        },
        enumerable: true,
        configurable: true,
      });
    }

    static {
      for (const [name, value] of Object.entries({ CONNECTING, OPEN, CLOSING, CLOSED })) {
        Object.defineProperty(WebSocket, name, { value, enumerable: true });
        Object.defineProperty(WebSocket.prototype, name, { value, enumerable: true });
      }
      EVENTS.forEach((type) => WebSocket.#on(type));
    }
  }

  return { WebSocket, Blob };
}
