export default function () {
  const one = 1,
    two = 2;
  let three = 3;
  {
    let one = 4;
  }
  const
    three = one + two;
}
