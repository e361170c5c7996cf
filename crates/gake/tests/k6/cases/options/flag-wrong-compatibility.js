// args: --compatibility-mode=new
export default function () {
  console.log('ran');
}
