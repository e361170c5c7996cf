// env: K6_CONSOLE_OUTPUT=c.txt
export const options = { thresholds: { iterations: ['count>5'] } };

export default function () {
  console.log(typeof __ENV.PATH);
}
