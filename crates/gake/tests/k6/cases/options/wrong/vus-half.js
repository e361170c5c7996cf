export const options = { vus: 1.5 };
export default function () {
  console.log('ran');
}
