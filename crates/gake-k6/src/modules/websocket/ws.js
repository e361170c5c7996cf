(native) => {
  class Socket {
    #session;
    #handlers = new Map();
    #timers = new Map();
    #lastTimer = 0;
    #isDone = false;

    constructor(session) {
      this.#session = session;
    }

    on(event, handler) {
      if (typeof handler !== "function") return;
      const bound = native.bind(handler);
      const known = this.#handlers.get(event);
      if (known) known.push(bound);
      else this.#handlers.set(event, [bound]);
    }

    send(message) {
      this.#write(String(message));
    }

    sendBinary(message) {
      if (message === undefined || message === null) {
        native.fail("missing argument, expected ArrayBuffer");
      }
      if (!(message instanceof ArrayBuffer)) {
        const kind = Object(message).constructor.name;
        native.fail(`expected ArrayBuffer as argument, received: ${kind}`);
      }
      this.#write(message);
    }

    ping() {
      this.#failed(this.#session.ping());
    }

    setTimeout(callback, delay) {
      this.#schedule("setTimeout", callback, Number(delay), false);
    }

    setInterval(callback, delay) {
      this.#schedule("setInterval", callback, Number(delay), true);
    }

    close(code) {
      this.#shut(code === undefined ? 1001 : Number(code));
    }

    #schedule(name, callback, delay, repeats) {
      if (!(delay > 0)) {
        native.fail(`${name} requires a >0 timeout parameter, received ${delay.toFixed(2)}`);
      }
      this.#timers.set(++this.#lastTimer, { due: native.now() + delay, delay, callback, repeats });
    }

    /** Sends a message and waits until it is flushed. */
    #write(message) {
      this.#session.sent();
      const error = this.#session.send(message);
      this.#session.flush();
      this.#failed(error);
    }

    #failed(error) {
      if (error) this.#fire("error", new GoError(error));
    }

    #fire(event, ...values) {
      for (const handler of this.#handlers.get(event) ?? []) handler(...values);
    }

    #shut(code) {
      if (this.#isDone) return;
      this.#isDone = true;
      const error = this.#session.close(code);
      this.#failed(error);
      this.#fire("close", code);
    }

    /** The earliest timer. */
    #next() {
      let first;
      for (const [number, timer] of this.#timers) {
        if (first === undefined || timer.due < first[1].due) first = [number, timer];
      }
      return first;
    }

    /** The next event, or nothing after `ms`. */
    #nextEvent(ms) {
      return ms === undefined ? this.#session.next() : this.#session.next(Math.max(0, ms));
    }

    #ring([number, timer]) {
      if (timer.repeats) {
        timer.due += timer.delay;
        // Of the missed ticks, only the last is made up for, as with Go's tickers.
        const missed = Math.floor((native.now() - timer.due) / timer.delay);
        if (missed > 0) timer.due += missed * timer.delay;
      } else {
        this.#timers.delete(number);
      }
      timer.callback();
    }

    /** Fires events and timers until the session is closed. */
    static run(session, prepare) {
      const socket = new Socket(session);
      try {
        prepare(socket);
        socket.#fire("open");
        // Due timers and events alternate, so that neither starves.
        let isTurnOfTimers = true;
        while (!socket.#isDone) {
          const timer = socket.#next();
          const left = timer ? timer[1].due - native.now() : undefined;
          const isRinging = isTurnOfTimers && left <= 0;
          const event = isRinging ? undefined : socket.#nextEvent(left);
          isTurnOfTimers = event !== undefined;
          if (event) socket.#heard(event);
          else socket.#ring(timer);
        }
      } catch (error) {
        socket.#shut(1001);
        throw error;
      } finally {
        session.end();
      }
    }

    #heard({ type, data, code, error }) {
      switch (type) {
        case "message":
        case "binaryMessage":
          this.#session.received();
          this.#fire(type, data);
          break;
        case "closed":
          this.#failed(error);
          this.#shut(code);
          break;
        default:
          this.#fire(type);
      }
    }
  }

  /** An error as k6 gives it to handlers. */
  class GoError extends Error {
    constructor(message) {
      super(message);
      this.name = "GoError";
    }

    error() {
      return this.message;
    }
  }

  function connect(url, ...rest) {
    native.notInInit();
    if (rest.length < 1 || rest.length > 2) {
      native.fail("invalid number of arguments to ws.connect");
    }
    const prepare = rest.at(-1);
    if (typeof prepare !== "function") {
      native.fail("last argument to ws.connect must be a function");
    }
    const opened = native.open(String(url), rest.length === 2 ? rest[0] : undefined);
    if (opened.error) {
      if (native.throws()) native.fail(opened.error);
      return opened.response ?? { url: "", status: 0, headers: {}, body: "", error: opened.error };
    }
    Socket.run(opened.session, prepare);
    return opened.response;
  }

  return { connect };
}
