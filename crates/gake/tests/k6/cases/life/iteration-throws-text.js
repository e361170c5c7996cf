export default function () {
  throw 'just text';
}
