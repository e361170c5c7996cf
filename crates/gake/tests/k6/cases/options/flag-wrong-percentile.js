// args: --summary-trend-stats=p(101)
export default function () {
  console.log('ran');
}
