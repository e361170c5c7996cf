const text = open('./open.txt');
const bytes = open('./open.txt', 'b');
export default function () {
  console.log(text.trim(), bytes.byteLength);
}
