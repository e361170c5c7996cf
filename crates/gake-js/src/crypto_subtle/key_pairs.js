// Key pairs of `crypto.subtle`: RSA, ECDSA and ECDH; keys derived from passwords (PBKDF2).
(native, kit) => {
  const { CryptoKey, named, nameOf, hashOf, allowed, bytesOf, encoded, decoded } = kit;
  const RSA = ['RSASSA-PKCS1-v1_5', 'RSA-PSS', 'RSA-OAEP'];
  const CURVES = { 'P-256': 32, 'P-384': 48, 'P-521': 66 };
  // The usages of each key of a pair.
  const USES = {
    private: ['sign', 'decrypt', 'deriveKey', 'deriveBits'],
    public: ['verify', 'encrypt'],
  };

  const isRsa = (name) => RSA.includes(name);
  const isCurve = (name) => name === 'ECDSA' || name === 'ECDH';
  const curveOf = (algorithm) => {
    if (algorithm.namedCurve in CURVES) return algorithm.namedCurve;
    throw named('NotSupportedError', `unsupported curve: ${algorithm.namedCurve}`);
  };
  // The curve argument of native functions; empty for RSA.
  const curve = (key) => key.algorithm.namedCurve ?? '';
  const ofKind = (key, type) => {
    if (key.type === type) return bytesOf(key);
    throw named('InvalidAccessError', `a ${type} key is expected`);
  };
  const made = (algorithm, type, bytes, extractable, usages) => {
    const name = nameOf(algorithm);
    const full = isRsa(name)
      ? {
          name,
          modulusLength: native.rsaBits(type === 'private', bytes),
          publicExponent: new Uint8Array([1, 0, 1]),
          hash: { name: hashOf(algorithm) },
        }
      : { name, namedCurve: curveOf(algorithm) };
    return new CryptoKey(type, full, extractable, usages, bytes);
  };
  const joined = (parts) => {
    const all = parts.map((part) => new Uint8Array(part));
    const whole = new Uint8Array(all.reduce((length, part) => length + part.length, 0));
    let at = 0;
    for (const part of all) {
      whole.set(part, at);
      at += part.length;
    }
    return whole.buffer;
  };
  const ofJwk = (algorithm, jwk, extractable, usages) => {
    if (jwk?.kty !== 'EC') throw named('NotSupportedError', `unsupported kind of key: ${jwk?.kty}`);
    const on = curveOf(algorithm);
    if (jwk.crv !== on) throw named('DataError', `the key is on ${jwk.crv}, not on ${on}`);
    if (jwk.d !== undefined) {
      const bytes = native.privateOfNumber(on, decoded(jwk.d));
      return made(algorithm, 'private', bytes, extractable, usages);
    }
    const point = joined([new Uint8Array([4]), decoded(jwk.x), decoded(jwk.y)]);
    return made(algorithm, 'public', native.public(on, point), extractable, usages);
  };
  const toJwk = (key) => {
    const on = curve(key);
    const point = native.point(on, key.type === 'private', bytesOf(key));
    const [x, y] = [point.slice(1, 1 + CURVES[on]), point.slice(1 + CURVES[on])];
    const jwk = { kty: 'EC', crv: on, x: encoded(x), y: encoded(y) };
    if (key.type === 'private') jwk.d = encoded(native.number(on, bytesOf(key)));
    return { ...jwk, ext: key.extractable, key_ops: key.usages };
  };

  return {
    has: (name) => isRsa(name) || isCurve(name) || name === 'PBKDF2',
    generate(algorithm, extractable, usages) {
      const name = nameOf(algorithm);
      if (!isRsa(name) && !isCurve(name)) throw named('NotSupportedError', `no key of ${name}`);
      if (isRsa(name) && new Uint8Array(algorithm.publicExponent).join() !== '1,0,1') {
        throw named('OperationError', 'the public exponent must be 65537');
      }
      const pair = isRsa(name)
        ? native.newRsa(algorithm.modulusLength)
        : native.newOnCurve(curveOf(algorithm));
      const half = (type, isExtractable) => {
        const uses = usages.filter((usage) => USES[type].includes(usage));
        return made(algorithm, type, pair[type], isExtractable, uses);
      };
      return { privateKey: half('private', !!extractable), publicKey: half('public', true) };
    },
    import(format, data, algorithm, extractable, usages) {
      const name = nameOf(algorithm);
      const rest = [!!extractable, [...usages]];
      if (name === 'PBKDF2' && format === 'raw') {
        return new CryptoKey('secret', { name }, false, [...usages], native.copy(data));
      }
      const on = isCurve(name) ? curveOf(algorithm) : '';
      if (format === 'jwk' && isCurve(name)) return ofJwk(algorithm, data, ...rest);
      if (format === 'pkcs8') return made(algorithm, 'private', native.private(on, data), ...rest);
      if (format === 'spki' || (format === 'raw' && isCurve(name))) {
        return made(algorithm, 'public', native.public(on, data), ...rest);
      }
      throw named('NotSupportedError', `unsupported key format for ${name}: ${format}`);
    },
    export(format, key) {
      if (format === 'pkcs8') return native.copy(ofKind(key, 'private'));
      if (format === 'spki') return native.copy(ofKind(key, 'public'));
      if (format === 'raw' && curve(key)) {
        return native.point(curve(key), false, ofKind(key, 'public'));
      }
      if (format === 'jwk' && curve(key)) return toJwk(key);
      const { name } = key.algorithm;
      throw named('NotSupportedError', `unsupported key format for ${name}: ${format}`);
    },
    sign(algorithm, key, data) {
      return native.signPair(...signing(algorithm, key, 'sign'), ofKind(key, 'private'), data);
    },
    verify(algorithm, key, signature, data) {
      const how = signing(algorithm, key, 'verify');
      return native.verifyPair(...how, ofKind(key, 'public'), signature, data);
    },
    crypt(algorithm, encrypts, key, data) {
      const name = nameOf(algorithm);
      allowed(key, encrypts ? 'encrypt' : 'decrypt', name);
      const label = algorithm.label ?? new Uint8Array();
      const bytes = ofKind(key, encrypts ? 'public' : 'private');
      return native.oaep(encrypts, key.algorithm.hash.name, bytes, label, data);
    },
    deriveBits(algorithm, key, length, use = 'deriveBits') {
      const name = nameOf(algorithm);
      allowed(key, use, name);
      if (name === 'PBKDF2') {
        if (!(length > 0) || length % 8 !== 0) {
          throw named('OperationError', 'the length must be a multiple of 8, and not 0');
        }
        const { salt, iterations } = algorithm;
        return native.ofPassword(hashOf(algorithm), bytesOf(key), salt, iterations, length / 8);
      }
      if (name !== 'ECDH') throw named('NotSupportedError', `unsupported algorithm: ${name}`);
      const other = algorithm.public;
      if (!(other instanceof CryptoKey) || curve(other) !== curve(key)) {
        throw named('InvalidAccessError', 'the public key is not on the curve of the private one');
      }
      const secret = native.agree(curve(key), ofKind(key, 'private'), ofKind(other, 'public'));
      const wanted = (length ?? 0) === 0 ? secret.byteLength : Math.ceil(length / 8);
      if (wanted > secret.byteLength) throw named('OperationError', 'the length is too large');
      return secret.slice(0, wanted);
    },
  };

  // The scheme of a key: its curve, whether the padding is PSS, the hash.
  function signing(algorithm, key, use) {
    const name = nameOf(algorithm);
    allowed(key, use, name);
    const hash = curve(key) ? hashOf(algorithm) : key.algorithm.hash.name;
    const length = { 'SHA-1': 20, 'SHA-256': 32, 'SHA-384': 48, 'SHA-512': 64 }[hash];
    if (name === 'RSA-PSS' && algorithm.saltLength !== length) {
      throw named('NotSupportedError', `RSA-PSS with ${hash} has a salt of ${length} bytes here`);
    }
    return [curve(key), name === 'RSA-PSS', hash];
  }
}
