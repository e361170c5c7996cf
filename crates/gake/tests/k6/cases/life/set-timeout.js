export default function () {
  setTimeout(() => console.log('later'), 20); console.log('now');
}
