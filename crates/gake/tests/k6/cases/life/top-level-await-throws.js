const value = await Promise.reject(new Error('never there'));

export default function () {
  console.log(value);
}
