export default function () {
  const a = 1, value;
}
