import { open as openFile } from 'k6/experimental/fs';
import csv from 'k6/experimental/csv';
let rows;
let steps = 0;
(async function () {
  const file = await openFile('../modules/rows.csv');
  rows = await csv.parse(file, { delimiter: ',' });
})();
Promise.resolve().then(() => { steps += 1; }).then(() => { steps += 1; });
export default function () { console.log(steps, rows.length > 1); }
