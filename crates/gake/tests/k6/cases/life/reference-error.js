export default function () {
  missing();
}
