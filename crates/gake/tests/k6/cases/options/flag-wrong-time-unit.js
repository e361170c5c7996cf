// args: --summary-time-unit h
export default function () {
  console.log('ran');
}
