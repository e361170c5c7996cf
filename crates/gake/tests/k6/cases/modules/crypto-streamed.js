import crypto from 'k6/crypto';
export default function () {
  const h = crypto.createHash('sha256'); h.update('hel'); h.update('lo'); console.log(h.digest('hex')); const m = crypto.createHMAC('sha1', 'k'); m.update('x'); console.log(m.digest('hex'), crypto.hexEncode('az'), crypto.randomBytes(7).byteLength);
}
