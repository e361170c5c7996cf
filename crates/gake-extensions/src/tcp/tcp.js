(native) => {
  const EVENTS = ["connect", "data", "close", "error", "timeout"];

  const own = (tags) => Object.assign({}, tags);

  return class Socket {
    #tags;
    #connectTags = {};
    #handlers = new Map();
    #connection;
    #state = "disconnected";
    #timeout = 0;
    #since = 0;
    #read = 0;
    #written = 0;

    constructor(options) {
      native.notInInit();
      this.#tags = own(options?.tags);
    }

    get ready_state() {
      return this.#state;
    }

    get connected() {
      return this.#state === "open";
    }

    get bytes_written() {
      return this.#written;
    }

    get bytes_read() {
      return this.#read;
    }

    get local_ip() {
      return this.#connection?.local_ip;
    }

    get local_port() {
      return this.#connection?.local_port;
    }

    get remote_ip() {
      return this.#connection?.remote_ip;
    }

    get remote_port() {
      return this.#connection?.remote_port;
    }

    on(event, handler) {
      if (!EVENTS.includes(event)) {
        native.warn("Unknown event type", String(event));
        return;
      }
      if (this.#handlers.has(event)) {
        native.warn("Event handler already registered, overriding", event);
      }
      this.#handlers.set(event, handler);
    }

    setTimeout(milliseconds) {
      this.#timeout = Math.max(Math.trunc(Number(milliseconds)) || 0, 0);
      this.#connection?.setTimeout(this.#timeout);
      return this;
    }

    connect(portOrOptions, host) {
      return new Promise((resolve, reject) => {
        const options = this.#options(portOrOptions, host);
        if (typeof options === "string") {
          reject(this.#failed("connect", options, this.#allTags()));
          return;
        }
        this.#connectTags = { ...own(options.tags), host: options.host, port: String(options.port) };
        this.#state = "opening";
        const tags = this.#allTags();
        native.connectLater(options.host, options.port, options.tls, tags, ({ connection, error }) => {
          if (error !== undefined) {
            if (this.#state === "opening") this.#state = "disconnected";
            reject(this.#failed("connect", error, tags));
            return;
          }
          if (this.#state !== "opening") {
            connection.close();
            reject(this.#failed("connect", "the socket was destroyed", tags));
            return;
          }
          this.#connection = connection;
          this.#since = native.now();
          this.#state = "open";
          connection.setTimeout(this.#timeout);
          native.count("tcp_sockets", tags);
          // Before handlers run: one that throws ends the iteration, but not the connection.
          this.#listen();
          try {
            this.#handlers.get("connect")?.();
          } finally {
            resolve(null);
          }
        });
      });
    }

    write(data, options) {
      return new Promise((resolve, reject) => {
        const tags = own(options?.tags);
        const { bytes, error } = native.encoded(data, String(options?.encoding ?? ""));
        if (error !== undefined) {
          reject(this.#failed("write", error, tags));
          return;
        }
        if (!this.#connection) {
          reject(native.error("no active connection"));
          return;
        }
        this.#connection.writeLater(bytes, ({ written, error }) => {
          this.#written += written;
          if (error !== undefined) {
            native.logWriteError(error);
            if (written > 0) native.count("tcp_partial_writes", tags);
          }
          native.count("tcp_writes", tags);
          if (error === undefined) resolve();
          else reject(native.error(error));
        });
      });
    }

    destroy() {
      if (this.#state === "destroyed") return;
      this.#state = "destroyed";
      const connection = this.#connection;
      if (connection) {
        const tags = this.#allTags();
        this.#connection = undefined;
        connection.close();
        native.duration(native.now() - this.#since, tags);
      }
      const handler = this.#handlers.get("close");
      if (handler) native.later(handler);
    }

    #options(portOrOptions, host) {
      const wrong = "invalid type: expected integer or object";
      if (this.#state === "destroyed") return "the socket was destroyed";
      let options = { port: portOrOptions };
      if (typeof portOrOptions === "object" && portOrOptions !== null) options = portOrOptions;
      else if (typeof portOrOptions !== "string" && !Number.isInteger(portOrOptions)) return wrong;
      else if (host !== undefined && host !== null) options.host = String(host);
      const port = Math.trunc(Number(options.port)) || 0;
      const given = options.host === undefined || options.host === null ? "" : String(options.host);
      const tls = Boolean(options.tls);
      return { port, host: given || "localhost", tls, tags: options.tags };
    }

    #allTags() {
      const ip = this.#connection?.remote_ip;
      return { proto: "TCP", ...this.#tags, ...this.#connectTags, ...(ip && { ip }) };
    }

    #listen() {
      this.#connection.readLater((event) => {
        // As in k6, what arrives after destroy() is not delivered.
        if (this.#state !== "open") return;
        if (event.data !== undefined) {
          this.#read += event.data.byteLength;
          native.count("tcp_reads", {});
          this.#listen();
          this.#handlers.get("data")?.(new Uint8Array(event.data));
        } else if (event.isTimeout) {
          this.#listen();
          this.#handlers.get("timeout")?.();
        } else {
          if (event.error !== undefined) this.#failed("read", event.error, {});
          this.destroy();
        }
      });
    }

    #failed(method, message, tags) {
      native.logError(method, message);
      native.count("tcp_errors", tags);
      const error = native.tcpError(method, message);
      const handler = this.#handlers.get("error");
      if (handler) native.later(() => handler(error));
      return error;
    }
  };
}
