import exec from 'k6/execution';
const tell = (name, read) => {
  try { console.log(name, typeof read()); } catch (error) { console.log(name, String(error)); }
};
const all = (stage) => {
  tell(stage + ' id', () => exec.vu.idInTest);
  tell(stage + ' tags', () => exec.vu.tags);
  tell(stage + ' name', () => exec.scenario.name);
  tell(stage + ' options', () => exec.test.options);
};
export function setup() { all('setup'); }
export default function () { all('iteration'); }
export function teardown() { all('teardown'); }
