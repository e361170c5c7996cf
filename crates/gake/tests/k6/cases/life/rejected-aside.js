export const options = { iterations: 3 };
export default async function () {
  if (__ITER === 0) {
    const later = Promise.reject(new Error('heard'));
    await later.catch((error) => console.log(String(error)));
  } else if (__ITER === 1) {
    setTimeout(async () => { throw new Error('in a timer'); }, 1);
  } else {
    (async () => { throw 'no error'; })();
    console.log('to the end');
  }
}
