import encoding from 'k6/encoding';
export default function () {
  const e = encoding; console.log(e.b64encode('hé>?'), e.b64encode('hé>?', 'url'), e.b64encode('hé>?', 'rawurl'), e.b64encode('hé>?', 'rawstd'), e.b64decode('aMOpPj8=', 'std', 's'), new Uint8Array(e.b64decode('AQID')).join());
}
