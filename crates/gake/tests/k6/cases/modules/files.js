import csv from 'k6/experimental/csv';
import fs, { open, SeekMode } from 'k6/experimental/fs';
const all = await csv.parse(await open('rows.csv'), { delimiter: ',' });
const some = await csv.parse(await open('rows.csv'), { skipFirstLine: true });
const part = await csv.parse(await open('rows.csv'), { fromLine: 1, toLine: 2 });
const objects = await csv.parse(await open('rows.csv'), { asObjects: true });
const parser = new csv.Parser(await open('rows.csv'), { skipFirstLine: true });
const file = await fs.open('rows.csv');
let missing;
try { await open('nothing.csv'); } catch (error) { missing = error.name; }
export default async function () {
  console.log(JSON.stringify(all), all.length, JSON.stringify(some), JSON.stringify(part));
  console.log(objects.map((one) => one.name + one.age).join());
  for (let i = 0; i < 4; i++) {
    const { done, value } = await parser.next();
    console.log(done, JSON.stringify(value));
  }
  console.log(missing);
  const stat = await file.stat();
  const buffer = new Uint8Array(4);
  const text = () => String.fromCharCode(...buffer);
  console.log(stat.name, stat.size, SeekMode.Start, SeekMode.Current, SeekMode.End);
  console.log(await file.read(buffer), text(), await file.seek(2, SeekMode.Start), await file.read(buffer), text());
  console.log(await file.seek(-3, SeekMode.End), await file.read(buffer), text(), await file.read(buffer));
  for (const bad of [() => file.seek(-1, SeekMode.Start), () => file.seek(1000, SeekMode.Start),
    () => file.read('x'), () => open('rows.csv'), () => file.seek(0, 9)]) {
    try { await bad(); } catch (error) { console.log(String(error)); }
  }
}
