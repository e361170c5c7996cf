// args: -e A=1 -e B=x=y
export default function () {
  console.log(__ENV.A, __ENV.B, __ENV.C);
}
