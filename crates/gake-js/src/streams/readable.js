// `k6/experimental/streams`: readable streams of the Streams standard, with default readers.
() => {
  const reject = (message) => Promise.reject(new TypeError(message));
  // The state of streams, hidden from scripts.
  const inner = new WeakMap();

  class CountQueuingStrategy {
    constructor({ highWaterMark } = {}) {
      this.highWaterMark = highWaterMark;
    }

    size() {
      return 1;
    }
  }

  const desired = (state) => {
    if (state.is === 'errored') return null;
    return state.is === 'closed' ? 0 : state.mark - state.held;
  };

  const finish = (state) => {
    state.is = 'closed';
    state.waiting.splice(0).forEach(({ resolve }) => resolve({ done: true, value: undefined }));
    state.reader?.settle();
  };

  const fail = (state, why) => {
    if (state.is !== 'readable') return;
    Object.assign(state, { is: 'errored', why, queue: [], held: 0 });
    state.waiting.splice(0).forEach(({ reject }) => reject(why));
    state.reader?.settle();
  };

  // Pulls from the source, one call at a time.
  const pull = (state) => {
    const wants = state.waiting.length > 0 || desired(state) > 0;
    if (state.is !== 'readable' || state.ends || !state.started || !wants) return;
    if (state.pulls) {
      state.pullsAgain = true;
      return;
    }
    state.pulls = true;
    Promise.resolve()
      .then(() => state.source.pull?.call(state.source, state.controller))
      .then(() => {
        state.pulls = false;
        if (state.pullsAgain) {
          state.pullsAgain = false;
          pull(state);
        }
      })
      .catch((why) => fail(state, why));
  };

  class ReadableStreamDefaultController {
    constructor(state) {
      inner.set(this, state);
    }

    get desiredSize() {
      return desired(inner.get(this));
    }

    enqueue(chunk) {
      const state = inner.get(this);
      if (state.is !== 'readable' || state.ends) {
        throw new TypeError('stream is not readable');
      }
      const reading = state.waiting.shift();
      if (reading) {
        reading.resolve({ done: false, value: chunk });
      } else {
        let size;
        try {
          size = Number(state.size(chunk));
          if (!(size >= 0 && size < Infinity)) throw new RangeError('invalid chunk size');
        } catch (why) {
          fail(state, why);
          throw why;
        }
        state.queue.push({ chunk, size });
        state.held += size;
      }
      pull(state);
    }

    close() {
      const state = inner.get(this);
      if (state.is !== 'readable' || state.ends) {
        throw new TypeError('stream is not readable');
      }
      state.ends = true;
      if (state.queue.length === 0) finish(state);
    }

    error(why) {
      fail(inner.get(this), why);
    }
  }

  const cancel = (state, why) => {
    if (state.is === 'closed') return Promise.resolve();
    if (state.is === 'errored') return Promise.reject(state.why);
    Object.assign(state, { queue: [], held: 0 });
    finish(state);
    return Promise.resolve()
      .then(() => state.source.cancel?.call(state.source, why))
      .then(() => undefined);
  };

  class ReadableStreamDefaultReader {
    constructor(stream) {
      const state = stream instanceof ReadableStream ? inner.get(stream) : undefined;
      if (!state) throw new TypeError('stream is not a ReadableStream');
      if (state.reader) throw new TypeError('stream is locked');
      inner.set(this, state);
      this.closed = new Promise((resolve, reject) => {
        this.settle = () => (state.is === 'closed' ? resolve() : reject(state.why));
        this.release = () => reject(new TypeError('the reader was released'));
      });
      this.closed.catch(() => {});
      for (const name of ['closed', 'settle', 'release']) {
        Object.defineProperty(this, name, { enumerable: false });
      }
      state.reader = this;
      if (state.is !== 'readable') this.settle();
    }

    read() {
      const state = inner.get(this);
      if (!state) return reject('stream is undefined');
      if (state.is === 'errored') return Promise.reject(state.why);
      if (state.is === 'closed') return Promise.resolve({ done: true, value: undefined });
      const next = state.queue.shift();
      if (next) {
        state.held -= next.size;
        if (state.ends && state.queue.length === 0) finish(state);
        else pull(state);
        return Promise.resolve({ done: false, value: next.chunk });
      }
      const read = new Promise((resolve, reject) => state.waiting.push({ resolve, reject }));
      pull(state);
      return read;
    }

    cancel(why) {
      const state = inner.get(this);
      return state ? cancel(state, why) : reject('stream is undefined');
    }

    releaseLock() {
      const state = inner.get(this);
      if (!state) return;
      const why = new TypeError('the reader was released');
      state.waiting.splice(0).forEach(({ reject }) => reject(why));
      this.release();
      state.reader = undefined;
      inner.delete(this);
    }
  }

  class ReadableStream {
    constructor(source = {}, strategy = {}) {
      if (source === null || typeof source !== 'object') {
        throw new TypeError('the underlying source must be an object');
      }
      if (source.type !== undefined) {
        throw new RangeError('streams of bytes are not supported');
      }
      const mark = strategy.highWaterMark === undefined ? 1 : Number(strategy.highWaterMark);
      if (!(mark >= 0)) throw new RangeError('invalid highWaterMark');
      const size = strategy.size ? (chunk) => strategy.size(chunk) : () => 1;
      const state = { is: 'readable', source, mark, size, queue: [], held: 0, waiting: [] };
      state.controller = new ReadableStreamDefaultController(state);
      inner.set(this, state);
      const begun = source.start?.call(source, state.controller);
      Promise.resolve(begun).then(
        () => {
          state.started = true;
          pull(state);
        },
        (why) => fail(state, why),
      );
    }

    get locked() {
      return inner.get(this).reader !== undefined;
    }

    cancel(why) {
      return this.locked ? reject('cannot cancel a locked stream') : cancel(inner.get(this), why);
    }

    getReader(options) {
      if (options?.mode !== undefined) throw new RangeError('streams of bytes are not supported');
      return new ReadableStreamDefaultReader(this);
    }
  }

  return { ReadableStream, ReadableStreamDefaultReader, CountQueuingStrategy };
}
