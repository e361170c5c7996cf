import exec from 'k6/execution';
console.log(typeof exec.vu.idInInstance);
export default function () {
  
}
