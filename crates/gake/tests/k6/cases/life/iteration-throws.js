// args: -i 3
export default function () {
  if (__ITER === 1) throw new Error('second'); console.log('ran');
}
