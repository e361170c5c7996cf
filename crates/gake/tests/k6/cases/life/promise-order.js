export default function () {
  Promise.resolve().then(() => console.log('micro')); console.log('sync');
}
