import crypto from 'k6/crypto';
export default function () {
  for (const f of ['md4', 'md5', 'sha1', 'sha256', 'sha384', 'sha512', 'sha512_224', 'sha512_256', 'ripemd160']) console.log(f, crypto[f]('hello', 'hex')); console.log(crypto.hmac('sha256', 'key', 'data', 'base64'), crypto.sha1('x', 'base64url'), crypto.sha1('x', 'base64rawurl'));
}
