import x509, { parse, getAltNames, getIssuer, getSubject } from 'k6/crypto/x509';

const shown = (value) =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part));
const attempt = (action) => {
  try {
    return shown(action());
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
};
const files = ['./rsa.pem', './ecdsa.pem', './ed25519.pem'].map((name) => open(name));

export default function () {
  console.log(Object.keys(x509).sort().join());
  for (const file of files) {
    for (const read of [parse, getAltNames, getIssuer, getSubject]) {
      console.log(attempt(() => read(file)));
    }
  }
  const empty = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n';
  for (const bad of ['', 'text', undefined, files[0].slice(0, 300), empty]) {
    for (const read of [parse, getAltNames]) console.log(attempt(() => read(bad)));
  }
}
