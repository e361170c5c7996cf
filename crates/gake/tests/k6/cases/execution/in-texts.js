import exec from 'k6/execution';
export default function () {
  exec.vu.tags.own = 'mine';
  console.log(`${exec.vu.tags} ${exec.vu.metrics.tags} ${exec.scenario} ${exec.test.options} ${exec.vu.tags.own} ${exec.vu.tags.none}`);
}
