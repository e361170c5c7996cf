// env: K6_INCLUDE_SYSTEM_ENV_VARS=false
export const options = { thresholds: { iterations: ['count>5'] } };

export default function () {
  console.log(typeof __ENV.PATH);
}
