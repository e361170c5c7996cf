// env: K6_LOG_OUTPUT=none
export const options = { thresholds: { iterations: ['count>5'] } };

export default function () {
  console.log(typeof __ENV.PATH);
}
