// args: --tag =x
export default function () {
  console.log('ran');
}
