export default function () {
  console.log('a', 1, true, null, undefined, [1, 'x'], { a: { b: 1 } }); console.debug('hidden'); console.info('i'); console.warn('w'); console.error('e');
}
