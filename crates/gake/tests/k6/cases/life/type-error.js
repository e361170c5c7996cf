export default function () {
  undefined.x;
}
