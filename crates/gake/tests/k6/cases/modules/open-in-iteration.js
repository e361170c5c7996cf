export default function () {
  open('./open.txt');
}
