import exec from 'k6/execution';
export default function () {
  try { exec.test.abort('final'); } catch (e) { console.log('caught'); }
}
