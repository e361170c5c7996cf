// `TextEncoder` and `TextDecoder` of the Encoding standard, for UTF-8 and UTF-16.
(encode, decode) => {
  const labels = {
    'utf-8': ['unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'utf8', 'x-unicode20utf8'],
    'utf-16le': ['csunicode', 'iso-10646-ucs-2', 'ucs-2', 'unicode', 'unicodefeff', 'utf-16'],
    'utf-16be': ['unicodefffe'],
  };

  const named = (label) => {
    const name = String(label).trim().toLowerCase();
    const found = Object.keys(labels).find((one) => one === name || labels[one].includes(name));
    if (!found) throw new RangeError(`unsupported encoding: ${name}`);
    return found;
  };

  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }

    encode(text) {
      return new Uint8Array(encode(String(text ?? '')));
    }

    encodeInto(text, into) {
      if (!(into instanceof Uint8Array)) {
        throw new TypeError('the destination must be a Uint8Array');
      }
      let read = 0;
      let written = 0;
      for (const character of String(text)) {
        const bytes = new Uint8Array(encode(character));
        if (written + bytes.length > into.length) break;
        into.set(bytes, written);
        read += character.length;
        written += bytes.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #encoding;
    #fatal;
    #ignoreBOM;
    #left = new Uint8Array(0);
    #begun = false;

    constructor(label, options) {
      this.#encoding = named(label ?? 'utf-8');
      this.#fatal = Boolean(options?.fatal);
      this.#ignoreBOM = Boolean(options?.ignoreBOM);
    }

    get encoding() {
      return this.#encoding;
    }

    get fatal() {
      return this.#fatal;
    }

    get ignoreBOM() {
      return this.#ignoreBOM;
    }

    // The bytes of earlier calls, followed by these.
    #joined(input) {
      if (typeof input === 'string') return this.#joined(encode(input));
      if (input === undefined || input === null) return this.#left;
      if (!(input instanceof ArrayBuffer) && !ArrayBuffer.isView(input)) {
        throw new TypeError('the input must be an ArrayBuffer or a view of one');
      }
      if (this.#left.length === 0) return input;
      const view = ArrayBuffer.isView(input)
        ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
        : new Uint8Array(input);
      const joined = new Uint8Array(this.#left.length + view.length);
      joined.set(this.#left);
      joined.set(view, this.#left.length);
      return joined;
    }

    decode(input, options) {
      const last = !options?.stream;
      const [text, valid, left] = decode(this.#encoding, this.#joined(input), last);
      const begun = this.#begun;
      const failed = this.#fatal && !valid;
      this.#left = new Uint8Array(failed ? 0 : left);
      this.#begun = !last && !failed && (begun || text !== '');
      if (failed) throw new TypeError('decoding text: invalid byte sequence');
      return !begun && !this.#ignoreBOM && text.startsWith('\ufeff') ? text.slice(1) : text;
    }
  }

  return { TextEncoder, TextDecoder };
}
