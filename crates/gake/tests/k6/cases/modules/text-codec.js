const tried = (f) => { try { console.log(f()); } catch (e) { console.log(e.name, e.message); } };
export default function () {
  const bytes = (...list) => new Uint8Array(list);
  tried(() => new TextEncoder().encode('aé€𝄞').join());
  tried(() => new TextEncoder().encode().length + new TextEncoder().encoding);
  tried(() => new TextEncoder().encode('\ud800').join());
  tried(() => new TextEncoder().encode(12).join());
  tried(() => new TextEncoder().encode(null).length);
  for (const label of ['utf8', ' UTF-8 ', 'utf-16', 'utf-16be', 'latin1', 'nope', undefined, null]) {
    tried(() => new TextDecoder(label).encoding);
  }
  tried(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes(0xff)));
  tried(() => new TextDecoder().decode(bytes(0xff, 0x41, 0xe2, 0x82)));
  tried(() => {
    const decoder = new TextDecoder();
    return decoder.decode(bytes(0xe2, 0x82), { stream: true }) + decoder.decode(bytes(0xac));
  });
  tried(() => new TextDecoder('utf-16le').decode(bytes(0x41, 0, 0x34, 0xd8, 0x1e, 0xdd)));
  tried(() => new TextDecoder().decode(bytes(0xef, 0xbb, 0xbf, 0x41)).length);
  tried(() => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes(0xef, 0xbb, 0xbf, 0x41)).length);
  tried(() => new TextDecoder().decode('text'));
  tried(() => new TextDecoder().decode() + new TextDecoder().decode(null));
  tried(() => new TextDecoder().decode(bytes(65, 66).buffer) + new TextDecoder().decode(new DataView(bytes(67).buffer)));
}
