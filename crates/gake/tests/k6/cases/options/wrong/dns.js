export const options = { dns: { select: 'best' } };
export default function () {
  console.log('ran');
}
