export default function () {
  Promise.reject(new Error('nobody')); console.log('after');
}
