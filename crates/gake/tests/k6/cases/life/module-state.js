// args: -i 3
let n = 0;
export default function () {
  console.log(++n);
}
