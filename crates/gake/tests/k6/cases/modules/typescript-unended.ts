export default function () {
  const a: number = 1;
