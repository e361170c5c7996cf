// What JSON.parse says of texts that are not JSON.
const texts = ['{bad', '', '<html>', '{"a":1}x', '{"a":', '{"a":1,}', '[1,]', '[1 2]', '{"a" 1}', 'nul', 'trux', '"abc', '"a\nb"', '"\\x"', '01', '1.', "{'a':1}", '[', '[1,2', 'undefined', 'Internal Server Error', '"a" "b"', '{"a":1}{"b":2}', '\u00e9', '1 2'];
export default function () {
  for (const text of texts) {
    try {
      console.log(JSON.parse(text));
    } catch (e) {
      console.log(`${JSON.stringify(text)}: ${e.name}: ${e.message}`);
    }
  }
}
