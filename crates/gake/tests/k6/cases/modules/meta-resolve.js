// What a module knows of itself.
import { text } from './meta/inner.js';
const opened = open(import.meta.resolve('./meta/data.txt'));
const show = (...names) => {
  try {
    console.log(JSON.stringify(names), import.meta.resolve(...names));
  } catch (e) {
    console.log(JSON.stringify(names), String(e));
  }
};
export default () => {
  console.log(Object.keys(import.meta).join(), typeof import.meta.url);
  show('./data.json');
  show('./a b.js');
  show('/absolute/x.js');
  show('https://x.test/z.js');
  show('http://x.test/z.js');
  show('file:///a/b.js');
  show('k6/http');
  show('bare');
  show('');
  show();
  show(5);
  console.log(opened.trim(), text.trim());
};
