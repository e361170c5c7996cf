import { b64decode, b64encode } from 'k6/encoding';
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const bytes = (text) => new Uint8Array([...text].map((letter) => letter.charCodeAt(0)));
const { subtle } = crypto;
const A = {
  kty: 'EC', crv: 'P-256', ext: true,
  d: 'xWzEmecBjdyIFZQi_sVfBdvSSv1zLMpcS0nb7f0Nb3M',
  x: 'dtDcnOTq0JzycbOK_XtxQYlo8xrsHZhZvz58HJSWuTA',
  y: 'TqWJjMIYQJXvEl-947LzNtfXIzigM7wVYl3xWYi1fjk',
};
const B = {
  kty: 'EC', crv: 'P-256', ext: true,
  x: 'H2Wk6last7LufsTIhXB3ha-EWNG8J2Ki5pqg_g63ovE',
  y: 'hA8-bn_ZRJcBm8J0-5uNcPN0IVkSpeQmdEDvxa4uVRI',
};
// Of a key that is not here: what it signed.
const RSA = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwIQvSMLqgK8gR1ORq8caz/3aOPEYW6csvA5v3Kr374ux3efxS53vLtNqJHcSil09MkXox7HgO+68lZlvx3XyL9snAVpupeHHf63aE4O5kaKg2mQyr9P9jctpEDtwQa+Qv4c51L59DHMH7Be1Hvq74FyrISTfA9iKLo0W+9XOFS5FrLLL//3SZppBIEHqmSTxQCovQYu3WDosD1GK60rbRRUPVHp88WXIB+G7TKc1SF9oMgIxpBFRc4AslPt1WCZ3hC97UdRCssmIZuAEftcV7CjrC0VdR+gVfQl18kJXlydavtp1qgYDhYPLnh1qoek7DqRVpHF5NfDtoJEwkKTp1wIDAQAB';
const PKCS1 = 'MBSDY8uWM2RS8+EXc790a9hiSsAWZ6mcs5IjTeUaNNYV/wT0Xkb0WTE1SQ8AT0npolc858PzOEHg6IhfgUJXY6KnhXWiHseA3aO5j3K01G77hq7YVwPYk9O8t5wplRHh8Rg1Jj2bbMnGOGfn8j1mOI2hBRWsG7OeQfy37DvS0Ja6/GMVBedGDLXW6jGuxKjy0Uec34QXbZ00lVvIeov/qFNk+vR8aOPJeA2CgEq+pRiUIDq3gLe4ySRCSKu7nRHmqxGHh0gSlhgmrIFLTfA0s6x9FmsjxK8dJ8TMXoVVpgubGwKncJApQutqFySTwJP8FanYwr9JVbd4FgcNt708bA==';
const PSS = 'KVvlwlK89vD1FsbV1BxhMQb1LcHGxfqi2HFS+WoC3qQw7uQP9c43uK4saPNnww2i1JddtDtr4vyBMbj0h/J/1Jv0B7kFCLIIDbKPEHZcT8Y9jlJ4pi5u4UzL6LiVnVinZ/StrE7sAEcGyshQ8h4m5KLfKMa7pG+STRV+NgeJFHOqpsT69Z9UcqPOBwyDIXEkTDlMysKI9psHCKks7IOU41cWZGsHN4ZV8MwPZw5i9KjRxae0Q9Fd0+YMdks8ZxeMo9a3gmscM0uWbRqYrmmWcEA4miUp/Bvl4btHfSN+DOIuEomwQ4TRnw4ykoOiKGFsQhCkUfwMpR3Zv32qxAbQaw==';

async function curves() {
  for (const [namedCurve, hash] of [['P-256', 'SHA-256'], ['P-384', 'SHA-384'], ['P-521', 'SHA-512']]) {
    const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve }, true, ['sign', 'verify']);
    const signature = await subtle.sign({ name: 'ECDSA', hash }, pair.privateKey, bytes('text'));
    const verify = (text) => subtle.verify({ name: 'ECDSA', hash }, pair.publicKey, signature, bytes(text));
    console.log(namedCurve, signature.byteLength, await verify('text'), await verify('other'));
    const spki = await subtle.exportKey('spki', pair.publicKey);
    const raw = await subtle.exportKey('raw', pair.publicKey);
    console.log(spki.byteLength, raw.byteLength, hex(spki).endsWith(hex(raw)), pair.publicKey.usages.join(), pair.privateKey.usages.join());
    const again = await subtle.importKey('pkcs8', await subtle.exportKey('pkcs8', pair.privateKey), { name: 'ECDSA', namedCurve }, true, ['sign']);
    const second = await subtle.sign({ name: 'ECDSA', hash }, again, bytes('text'));
    const imported = await subtle.importKey('raw', raw, { name: 'ECDSA', namedCurve }, true, ['verify']);
    console.log(again.type, await subtle.verify({ name: 'ECDSA', hash }, imported, second, bytes('text')));
  }
}

async function agreement() {
  const on = { name: 'ECDH', namedCurve: 'P-256' };
  const mine = await subtle.importKey('jwk', A, on, true, ['deriveKey', 'deriveBits']);
  const theirs = await subtle.importKey('jwk', B, on, true, []);
  console.log(hex(await subtle.deriveBits({ name: 'ECDH', public: theirs }, mine, 256)));
  const jwk = await subtle.exportKey('jwk', mine);
  console.log(jwk.kty, jwk.crv, jwk.d, jwk.x, jwk.y);
}

async function rsa() {
  const verify = async (algorithm, signature, text) => {
    const key = await subtle.importKey('spki', b64decode(RSA), { name: algorithm.name, hash: 'SHA-256' }, true, ['verify']);
    return subtle.verify(algorithm, key, b64decode(signature), bytes(text));
  };
  for (const [algorithm, signature] of [[{ name: 'RSASSA-PKCS1-v1_5' }, PKCS1], [{ name: 'RSA-PSS', saltLength: 32 }, PSS]]) {
    console.log(algorithm.name, await verify(algorithm, signature, 'text'), await verify(algorithm, signature, 'other'));
    const made = { name: algorithm.name, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' };
    const pair = await subtle.generateKey(made, true, ['sign', 'verify']);
    const own = await subtle.sign(algorithm, pair.privateKey, bytes('text'));
    const pkcs8 = await subtle.exportKey('pkcs8', pair.privateKey);
    const again = await subtle.importKey('pkcs8', pkcs8, { name: made.name, hash: made.hash }, false, ['sign']);
    console.log(own.byteLength, again.type, again.extractable, await subtle.verify(algorithm, pair.publicKey, await subtle.sign(algorithm, again, bytes('text')), bytes('text')));
  }
  const made = { name: 'RSA-OAEP', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' };
  const pair = await subtle.generateKey(made, true, ['encrypt', 'decrypt']);
  const secret = await subtle.encrypt({ name: 'RSA-OAEP' }, pair.publicKey, bytes('a text'));
  console.log(secret.byteLength, hex(await subtle.decrypt({ name: 'RSA-OAEP' }, pair.privateKey, secret)));
  console.log(b64encode(await subtle.exportKey('spki', await subtle.importKey('spki', b64decode(RSA), { name: 'RSA-OAEP', hash: 'SHA-1' }, true, ['encrypt']))) === RSA);
}

async function password() {
  const key = await subtle.importKey('raw', bytes('password'), { name: 'PBKDF2' }, false, ['deriveBits', 'deriveKey']);
  for (const hash of ['SHA-1', 'SHA-256', 'SHA-512']) {
    const how = { name: 'PBKDF2', hash, salt: bytes('salt'), iterations: 2 };
    console.log(hash, hex(await subtle.deriveBits(how, key, 160)));
    const derived = await subtle.deriveKey(how, key, { name: 'AES-CBC', length: 128 }, true, ['encrypt']);
    console.log(hex(await subtle.exportKey('raw', derived)));
  }
}

async function wrong(what, attempt) {
  try {
    await attempt();
    console.log(what, 'worked');
  } catch (error) {
    console.log(what, 'threw');
  }
}

export default async function () {
  await curves();
  await agreement();
  await rsa();
  await password();
  const on = { name: 'ECDSA', namedCurve: 'P-256' };
  const key = await subtle.importKey('jwk', A, on, false, ['sign']);
  await wrong('export', () => subtle.exportKey('jwk', key));
  await wrong('verify', () => subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, bytes(''), bytes('')));
  await wrong('no key', () => subtle.importKey('spki', bytes('no key'), on, true, ['verify']));
  await wrong('no point', () => subtle.importKey('raw', bytes('no point'), on, true, ['verify']));
  await wrong('curve', () => subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-1' }, true, ['sign']));
}
