// `k6/experimental/fs` and `k6/experimental/csv` on native functions.
(native) => {
  const named = (name, message) => Object.assign(new Error(message), { name });
  const refuse = (message) => {
    throw named('TypeError', message);
  };
  const SeekMode = Object.freeze({ Start: 0, Current: 1, End: 2 });

  class File {
    #size;
    #at = 0;

    constructor(path, size) {
      this.path = path;
      this.#size = size;
    }

    static isFile(value) {
      return typeof value === 'object' && value !== null && #at in value;
    }

    // The current position; moves to the end of the file.
    static takePosition(file) {
      const at = file.#at;
      file.#at = file.#size;
      return at;
    }

    static isAtEnd(file) {
      return file.#at >= file.#size;
    }

    async stat() {
      return { name: this.path.split('/').pop(), size: this.#size };
    }

    async read(into) {
      if (!(into instanceof Uint8Array)) {
        refuse('read() failed; reason: into argument must be a Uint8Array');
      }
      if (this.#at >= this.#size) return null;
      const chunk = new Uint8Array(native.slice(this.path, this.#at, this.#at + into.length));
      into.set(chunk);
      this.#at += chunk.length;
      return chunk.length;
    }

    async seek(offset, whence) {
      if (!Object.values(SeekMode).includes(whence)) {
        refuse('seek() failed; reason: the whence argument must be a SeekMode');
      }
      if (!Number.isInteger(offset)) {
        refuse('seek() failed; reason: the offset argument must be an integer');
      }
      if (whence === SeekMode.Start && offset < 0) {
        refuse('offset cannot be negative when using SeekModeStart');
      }
      if (whence === SeekMode.End && offset > 0) {
        refuse('offset cannot be positive when using SeekModeEnd');
      }
      const at = [0, this.#at, this.#size - 1][whence] + offset;
      if (at < 0) refuse('seeking before start of file');
      if (at >= this.#size) refuse('seeking beyond end of file');
      this.#at = at;
      return at;
    }
  }

  const open = async (name) => {
    if (!native.isInit()) {
      throw named('ForbiddenError',
        'open() failed; reason: opening a file is allowed only in the Init context');
    }
    if (name === undefined || name === null) {
      refuse('open() failed; reason: path cannot be null or undefined');
    }
    if (String(name) === '') refuse('open() failed; reason: path cannot be empty');
    const path = native.path(String(name));
    const size = native.size(path);
    if (size === undefined || size === null) {
      throw named('NotFoundError', `no such file or directory "${path}"`);
    }
    return new File(path, size);
  };

  const rows = (file, given) => {
    const { delimiter = ',', skipFirstLine = false, fromLine, toLine, asObjects = false } =
      given ?? {};
    const wrong = (why) => native.fail(`failed to interpret the provided Parser options; reason: ${why}`);
    const unfit = (why) => native.fail(`failed to create a new parser; reason: ${why}`);
    if (!File.isFile(file)) {
      native.fail(`first argument expected to be a fs.File instance, got ${typeof file} instead`);
    }
    if ([...String(delimiter)].length !== 1) wrong('delimiter must be a single character');
    if (toLine !== undefined && (fromLine ?? 0) > toLine) {
      wrong('fromLine must be less than or equal to toLine');
    }
    if (fromLine < 0) {
      unfit(`the 'fromLine' option must be greater than or equal to 0; got ${fromLine}`);
    }
    if (asObjects && skipFirstLine) {
      unfit("the 'header' option cannot be enabled when 'skipFirstLine' is true");
    }
    if (skipFirstLine && File.isAtEnd(file)) {
      unfit('failed to skip the first line; reason: EOF');
    }
    const from = Math.max(fromLine ?? 0, Number(skipFirstLine));
    const wanted = { delimiter: String(delimiter), from, to: toLine, asObjects };
    return native.rows(file.path, File.takePosition(file), wanted);
  };

  class Parser {
    #rows;
    #at = 0;

    constructor(file, options) {
      this.#rows = rows(file, options);
    }

    async next() {
      if (this.#at >= this.#rows.length) return { done: true, value: [] };
      const row = this.#rows[this.#at];
      this.#at += 1;
      return { done: false, value: Array.isArray(row) ? [...row] : { ...row } };
    }
  }

  const parse = async (file, options) => rows(file, options);
  return { fs: { open, SeekMode }, csv: { parse, Parser } };
}
