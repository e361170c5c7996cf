// args: --summary-mode=loud
export default function () {
  console.log('ran');
}
