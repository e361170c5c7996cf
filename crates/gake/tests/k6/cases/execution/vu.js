import exec from 'k6/execution';
export const options = { vus: 1, iterations: 2 };
export default function () {
  const v = exec.vu; console.log(v.idInInstance, v.idInTest, v.iterationInInstance, v.iterationInScenario);
}
