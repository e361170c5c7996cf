export const options = { vus: 'x' };
export default function () {
  console.log('ran');
}
