// The value that `setup` returned as JSON, as k6 writes it; or why it has none.
(value) => {
  class Unsupported {
    constructor(what) {
      this.what = what;
    }
  }
  const refuse = (what) => {
    throw new Unsupported(what);
  };
  const inside = new Set();
  const plain = (value) => {
    if (value === undefined || value === null) return null;
    if (typeof value === 'function') {
      return refuse('type: func(sobek.FunctionCall) sobek.Value');
    }
    if (typeof value === 'bigint') return Number(value);
    if (typeof value === 'symbol') return value.description ?? '';
    if (typeof value === 'number') {
      if (Number.isFinite(value)) return value;
      return refuse(`value: ${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'}`);
    }
    if (typeof value !== 'object') return value;
    if (value instanceof Date) return value.toISOString().replace(/\.?0*Z$/, 'Z');
    if (ArrayBuffer.isView(value)) return base64(value);
    if (inside.has(value)) refuse('value: encountered a cycle via map[string]interface {}');
    inside.add(value);
    let copy;
    if (Array.isArray(value)) copy = value.map(plain);
    else if (value instanceof Set) copy = [...value].map(plain);
    else if (value instanceof Map) copy = [...value].map((pair) => pair.map(plain));
    else copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
    inside.delete(value);
    return copy;
  };
  const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const base64 = (view) => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    let text = '';
    for (let at = 0; at < bytes.length; at += 3) {
      const bits = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      for (let place = 0; place < 4; place += 1) {
        text += at + place <= bytes.length ? LETTERS[(bits >> (18 - 6 * place)) & 63] : '=';
      }
    }
    return text;
  };
  try {
    return { json: JSON.stringify(plain(value)) };
  } catch (error) {
    if (error instanceof Unsupported) return { wrong: error.what };
    throw error;
  }
};
