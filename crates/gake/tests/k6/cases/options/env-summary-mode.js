// env: K6_SUMMARY_MODE=full
export const options = { thresholds: { iterations: ['count>5'] } };

export default function () {
  console.log(typeof __ENV.PATH);
}
