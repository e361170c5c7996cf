const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const bytes = (text) => new Uint8Array([...text].map((letter) => letter.charCodeAt(0)));
export default async function () {
  for (const hash of ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512']) {
    console.log(hash, hex(await crypto.subtle.digest(hash, bytes('text'))));
    const key = await crypto.subtle.importKey('raw', bytes('key'), { name: 'HMAC', hash }, true, ['sign', 'verify']);
    const signature = await crypto.subtle.sign('HMAC', key, bytes('text'));
    console.log(hex(signature), await crypto.subtle.verify('HMAC', key, signature, bytes('text')),
      await crypto.subtle.verify('HMAC', key, signature, bytes('other')));
  }
  const raw = new Uint8Array(32).fill(7);
  for (const algorithm of [
    { name: 'AES-CBC', iv: new Uint8Array(16).fill(1) },
    { name: 'AES-GCM', iv: new Uint8Array(12).fill(1), additionalData: bytes('aside') },
    { name: 'AES-CTR', counter: new Uint8Array(16).fill(1), length: 64 },
  ]) {
    const key = await crypto.subtle.importKey('raw', raw, algorithm.name, true, ['encrypt', 'decrypt']);
    const secret = await crypto.subtle.encrypt(algorithm, key, bytes('a text of some blocks'));
    console.log(algorithm.name, hex(secret), hex(await crypto.subtle.decrypt(algorithm, key, secret)));
    console.log(key.type, key.extractable, key.usages.join(), hex(await crypto.subtle.exportKey('raw', key)).length);
  }
  const made = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt']);
  console.log((await crypto.subtle.exportKey('raw', made)).byteLength);
  const mac = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
  console.log((await crypto.subtle.exportKey('raw', mac)).byteLength);
  const closed = await crypto.subtle.importKey('raw', raw, 'AES-CBC', false, ['encrypt']);
  try { await crypto.subtle.exportKey('raw', closed); } catch (error) { console.log('not extractable'); }
}
