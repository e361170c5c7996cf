import encoding from 'k6/encoding';
export default function () {
  for (const [text, kind] of [['!!!', 'std'], ['YQ', 'std'], ['YWJjZA', 'std'], ['YR==', 'std'], ['YR', 'rawurl'], ['YWJj*A==', 'std']]) {
    try { console.log(encoding.b64decode(text, kind, 's')); } catch (e) { console.log(e.message); }
  }
}
