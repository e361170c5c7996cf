// Writable streams of the Streams standard, with default writers.
() => {
  // The state of streams and writers, hidden from scripts.
  const inner = new WeakMap();

  // A promise with its functions; a rejection that no one awaits is not an error of the script.
  const deferred = () => {
    const made = {};
    made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
    made.promise.catch(() => {});
    return made;
  };

  const desired = (state) => {
    if (state.is === 'errored' || state.is === 'erroring') return null;
    return state.is === 'closed' ? 0 : state.mark - state.held;
  };

  const isClosing = (state) => state.queue.some((entry) => entry.closes);

  // Replaces the writer's `ready` when the queue gets full, and settles it when there is room.
  const pace = (state) => {
    const { writer } = state;
    if (!writer || state.is !== 'writable' || isClosing(state)) return;
    const isFull = desired(state) <= 0;
    if (isFull && !writer.waits) writer.ready = deferred();
    if (!isFull && writer.waits) writer.ready.resolve();
    writer.waits = isFull;
  };

  const settleWriter = (state) => {
    const { writer } = state;
    if (!writer) return;
    if (state.is === 'closed') {
      writer.closed.resolve();
      writer.ready.resolve();
    }
    if (state.is === 'errored') writer.closed.reject(state.why);
    if (state.is === 'errored' || state.is === 'erroring') {
      if (!writer.waits) writer.ready = deferred();
      writer.waits = true;
      writer.ready.reject(state.why);
    }
  };

  // Ends an erroring stream once nothing of its sink is in progress.
  const finishError = (state) => {
    if (state.busy || !state.started) return;
    state.is = 'errored';
    state.queue.splice(0).forEach(({ reject }) => reject(state.why));
    state.held = 0;
    settleWriter(state);
    const { aborting } = state;
    if (!aborting) return;
    if (aborting.wasErroring) return aborting.reject(state.why);
    new Promise((resolve) => resolve(state.sink.abort?.(state.why))).then(
      () => aborting.resolve(),
      aborting.reject,
    );
  };

  const fail = (state, why) => {
    if (state.is !== 'writable') return;
    Object.assign(state, { is: 'erroring', why });
    settleWriter(state);
    finishError(state);
  };

  // Passes the first entry of the queue to the sink, one at a time.
  const advance = (state) => {
    if (!state.started || state.busy) return;
    if (state.is === 'erroring') return finishError(state);
    const [entry] = state.queue;
    if (!entry || state.is !== 'writable') return;
    state.busy = true;
    const { sink, controller } = state;
    const passed = new Promise((resolve) => {
      resolve(entry.closes ? sink.close?.() : sink.write?.(entry.chunk, controller));
    });
    const end = (settle) => {
      state.busy = false;
      state.queue.shift();
      state.held -= entry.size;
      settle();
    };
    passed.then(
      () =>
        end(() => {
          entry.resolve();
          if (entry.closes) {
            state.is = 'closed';
            state.aborting?.resolve();
            return settleWriter(state);
          }
          pace(state);
          advance(state);
        }),
      (why) =>
        end(() => {
          entry.reject(why);
          if (state.is === 'erroring') finishError(state);
          else fail(state, why);
        }),
    );
  };

  const add = (state, entry) => {
    const { promise, resolve, reject } = deferred();
    state.queue.push({ ...entry, resolve, reject });
    state.held += entry.size;
    pace(state);
    advance(state);
    return promise;
  };

  const write = (state, chunk) => {
    if (state.is === 'errored' || state.is === 'erroring') return Promise.reject(state.why);
    if (state.is === 'closed' || isClosing(state)) {
      return Promise.reject(new TypeError('stream is closing or closed'));
    }
    let size = 1;
    try {
      size = Number(state.size(chunk));
      if (!(size >= 0 && size < Infinity)) throw new RangeError('invalid chunk size');
    } catch (why) {
      fail(state, why);
      return Promise.reject(why);
    }
    return add(state, { chunk, size });
  };

  const close = (state) => {
    if (state.is === 'closed' || state.is === 'errored' || isClosing(state)) {
      return Promise.reject(new TypeError('stream is closing or closed'));
    }
    if (state.is === 'erroring') return Promise.reject(state.why);
    state.writer?.ready.resolve();
    if (state.writer) state.writer.waits = false;
    return add(state, { closes: true, size: 0 });
  };

  const abort = (state, why) => {
    if (state.is === 'closed' || state.is === 'errored') return Promise.resolve();
    if (state.aborting) return state.aborting.promise;
    const wasErroring = state.is === 'erroring';
    state.aborting = Object.assign(deferred(), { wasErroring });
    fail(state, why);
    return state.aborting.promise;
  };

  class WritableStreamDefaultController {
    constructor(state) {
      inner.set(this, state);
    }

    error(why) {
      fail(inner.get(this), why);
    }
  }

  class WritableStreamDefaultWriter {
    constructor(stream) {
      const state = stream instanceof WritableStream ? inner.get(stream) : undefined;
      if (!state) throw new TypeError('stream is not a WritableStream');
      if (state.writer) throw new TypeError('stream is locked');
      const own = { state, ready: deferred(), closed: deferred(), waits: true };
      inner.set(this, own);
      state.writer = own;
      if (state.is === 'writable' && isClosing(state)) own.ready.resolve();
      pace(state);
      settleWriter(state);
    }

    get closed() {
      return inner.get(this).closed.promise;
    }

    get ready() {
      return inner.get(this).ready.promise;
    }

    #state() {
      const { state } = inner.get(this);
      if (!state) throw new TypeError('the writer was released');
      return state;
    }

    get desiredSize() {
      return desired(this.#state());
    }

    async write(chunk) {
      return write(this.#state(), chunk);
    }

    async close() {
      return close(this.#state());
    }

    async abort(why) {
      return abort(this.#state(), why);
    }

    releaseLock() {
      const own = inner.get(this);
      if (!own.state) return;
      const why = new TypeError('the writer was released');
      if (!own.waits) own.ready = deferred();
      own.ready.reject(why);
      if (own.state.is === 'closed' || own.state.is === 'errored') own.closed = deferred();
      own.closed.reject(why);
      own.state.writer = undefined;
      own.state = undefined;
    }
  }

  class WritableStream {
    constructor(sink = {}, strategy = {}) {
      if (sink === null || typeof sink !== 'object') {
        throw new TypeError('underlyingSink must be an object');
      }
      if (sink.type !== undefined) throw new RangeError("'type' is not supported by WritableStream");
      const mark = strategy.highWaterMark === undefined ? 1 : Number(strategy.highWaterMark);
      if (!(mark >= 0)) throw new RangeError('invalid highWaterMark');
      const size = strategy.size ? (chunk) => strategy.size(chunk) : () => 1;
      const state = { is: 'writable', sink, mark, size, queue: [], held: 0, busy: false };
      state.controller = new WritableStreamDefaultController(state);
      inner.set(this, state);
      const begun = sink.start?.(state.controller);
      Promise.resolve(begun).then(
        () => {
          state.started = true;
          advance(state);
        },
        (why) => {
          state.started = true;
          if (state.is === 'erroring') finishError(state);
          else fail(state, why);
        },
      );
    }

    get locked() {
      return inner.get(this).writer !== undefined;
    }

    async abort(why) {
      if (this.locked) throw new TypeError('cannot abort a locked stream');
      return abort(inner.get(this), why);
    }

    async close() {
      if (this.locked) throw new TypeError('cannot close a locked stream');
      return close(inner.get(this));
    }

    getWriter() {
      return new WritableStreamDefaultWriter(this);
    }
  }

  return { WritableStream, WritableStreamDefaultWriter };
}
