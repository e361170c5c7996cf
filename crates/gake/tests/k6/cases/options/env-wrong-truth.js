// env: K6_NO_THRESHOLDS=perhaps
export const options = { thresholds: { iterations: ['count>5'] } };

export default function () {
  console.log(typeof __ENV.PATH);
}
