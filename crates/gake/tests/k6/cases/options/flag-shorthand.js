// args: -i=2 -u=2
export default function () {
  console.log('ran');
}
