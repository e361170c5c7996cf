// `crypto.subtle`: keys and promises on native functions.
(native, makePairs) => {
  const AES = ['AES-CBC', 'AES-CTR', 'AES-GCM'];
  const HASHES = { 'SHA-1': 64, 'SHA-256': 64, 'SHA-384': 128, 'SHA-512': 128 };
  const bytesOf = (key) => key[secret];
  const secret = Symbol('secret');

  class CryptoKey {
    constructor(type, algorithm, extractable, usages, bytes) {
      Object.assign(this, { type, algorithm, extractable, usages });
      Object.defineProperty(this, secret, { value: bytes });
    }
  }

  const named = (error, message) => Object.assign(new Error(message), { name: error });
  const nameOf = (algorithm) => {
    const name = typeof algorithm === 'string' ? algorithm : algorithm?.name;
    if (typeof name !== 'string') throw named('TypeError', 'the algorithm has no name');
    return name.toUpperCase().replace('-V1_5', '-v1_5');
  };
  const hashOf = (algorithm) => {
    const hash = nameOf(algorithm.hash);
    if (!(hash in HASHES)) throw named('NotSupportedError', `unsupported hash: ${hash}`);
    return hash;
  };
  const allowed = (key, usage, name) => {
    if (!(key instanceof CryptoKey)) throw named('TypeError', 'a CryptoKey is expected');
    if (key.algorithm.name !== name) {
      throw named('InvalidAccessError', `the key is of ${key.algorithm.name}, not of ${name}`);
    }
    if (!key.usages.includes(usage)) {
      throw named('InvalidAccessError', `the key must not be used to ${usage}`);
    }
  };
  const unsupported = (name) => named('NotSupportedError', `unsupported algorithm: ${name}`);
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const encoded = (buffer) => {
    let text = '';
    let bits = 0;
    let count = 0;
    for (const byte of new Uint8Array(buffer)) {
      bits = (bits << 8) | byte;
      for (count += 8; count >= 6; count -= 6) text += letters[(bits >> (count - 6)) & 63];
      bits &= 0xff;
    }
    return count > 0 ? text + letters[(bits << (6 - count)) & 63] : text;
  };
  const decoded = (text) => {
    const bytes = [];
    let bits = 0;
    let count = 0;
    for (const letter of text.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')) {
      const value = letters.indexOf(letter);
      if (value < 0) throw named('DataError', 'the key is no base64url');
      bits = ((bits << 6) | value) & 0xffff;
      count += 6;
      if (count >= 8) bytes.push((bits >> (count -= 8)) & 0xff);
    }
    return new Uint8Array(bytes).buffer;
  };

  const secretKey = (algorithm, bytes, extractable, usages) => {
    const name = nameOf(algorithm);
    const length = bytes.byteLength * 8;
    if (AES.includes(name)) {
      if (![128, 192, 256].includes(length)) {
        throw named('DataError', 'an AES key has 128, 192 or 256 bits');
      }
      return new CryptoKey('secret', { name, length }, !!extractable, [...usages], bytes);
    }
    if (name !== 'HMAC') throw unsupported(name);
    const hash = { name: hashOf(algorithm) };
    return new CryptoKey('secret', { name, hash, length }, !!extractable, [...usages], bytes);
  };
  const crypt = (algorithm, encrypts, key, data) => {
    const name = nameOf(algorithm);
    if (name === 'RSA-OAEP') return pairs.crypt(algorithm, encrypts, key, data);
    if (!AES.includes(name)) throw unsupported(name);
    allowed(key, encrypts ? 'encrypt' : 'decrypt', name);
    if ((algorithm.tagLength ?? 128) !== 128) {
      throw named('NotSupportedError', 'AES-GCM has tags of 128 bits here');
    }
    const iv = name === 'AES-CTR' ? algorithm.counter : algorithm.iv;
    const aad = algorithm.additionalData ?? new Uint8Array();
    return native.aes(name, encrypts, bytesOf(key), iv, aad, data);
  };

  const kit = { CryptoKey, named, nameOf, hashOf, allowed, bytesOf, encoded, decoded };
  const pairs = makePairs(native, kit);

  return {
    async digest(algorithm, data) { return native.digest(nameOf(algorithm), data); },
    async sign(algorithm, key, data) {
      if (pairs.has(nameOf(algorithm))) return pairs.sign(algorithm, key, data);
      allowed(key, 'sign', nameOf(algorithm));
      return native.sign(key.algorithm.hash.name, bytesOf(key), data);
    },
    async verify(algorithm, key, signature, data) {
      if (pairs.has(nameOf(algorithm))) return pairs.verify(algorithm, key, signature, data);
      allowed(key, 'verify', nameOf(algorithm));
      return native.verify(key.algorithm.hash.name, bytesOf(key), signature, data);
    },
    async encrypt(algorithm, key, data) { return crypt(algorithm, true, key, data); },
    async decrypt(algorithm, key, data) { return crypt(algorithm, false, key, data); },
    async generateKey(algorithm, extractable, usages) {
      const name = nameOf(algorithm);
      if (pairs.has(name)) return pairs.generate(algorithm, extractable, usages);
      if (AES.includes(name) && ![128, 192, 256].includes(Number(algorithm.length))) {
        throw named('OperationError', 'an AES key has 128, 192 or 256 bits');
      }
      const bits = AES.includes(name)
        ? Number(algorithm.length)
        : algorithm.length ?? HASHES[hashOf(algorithm)] * 8;
      return secretKey(algorithm, native.random(bits >> 3), extractable, usages);
    },
    async importKey(format, data, algorithm, extractable, usages) {
      if (pairs.has(nameOf(algorithm))) {
        return pairs.import(format, data, algorithm, extractable, usages);
      }
      if (format === 'raw') return secretKey(algorithm, native.copy(data), extractable, usages);
      if (format === 'jwk' && data?.kty === 'oct') {
        return secretKey(algorithm, decoded(data.k), extractable, usages);
      }
      throw named('NotSupportedError', `unsupported key format: ${format}`);
    },
    async exportKey(format, key) {
      if (!key.extractable) throw named('InvalidAccessError', 'the key is not extractable');
      if (pairs.has(key.algorithm.name)) return pairs.export(format, key);
      if (format === 'raw') return native.copy(bytesOf(key));
      if (format !== 'jwk') throw named('NotSupportedError', `unsupported key format: ${format}`);
      const { name, hash, length } = key.algorithm;
      const alg = name === 'HMAC' ? `HS${hash.name.slice(4)}` : `A${length}${name.slice(4)}`;
      return { kty: 'oct', k: encoded(bytesOf(key)), alg, ext: true, key_ops: key.usages };
    },
    async deriveBits(algorithm, key, length) { return pairs.deriveBits(algorithm, key, length); },
    async deriveKey(algorithm, key, derived, extractable, usages) {
      const bits = derived.length ?? HASHES[hashOf(derived)] * 8;
      const bytes = pairs.deriveBits(algorithm, key, bits, 'deriveKey');
      return secretKey(derived, bytes, extractable, usages);
    },
  };
}
