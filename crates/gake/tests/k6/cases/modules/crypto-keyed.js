import crypto from 'k6/crypto';
export default function () {
  for (const f of ['md4', 'md5', 'sha1', 'sha256', 'sha384', 'sha512', 'sha512_224', 'sha512_256', 'ripemd160']) {
    console.log(f, crypto.hmac(f, 'key', 'text', 'hex'), crypto.createHash(f).digest('hex'));
  }
}
