// env: HIDDEN=1
export default function () {
  console.log(__ENV.HIDDEN);
}
