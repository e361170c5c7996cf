export const options = { executionSegment: '2/3:1/3' };
export default function () {
  console.log('ran');
}
