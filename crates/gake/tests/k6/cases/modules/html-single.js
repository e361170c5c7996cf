import { parseHTML } from 'k6/html';
export default function () {
  const page = parseHTML('<h1>a</h1><div><p>b</p></div><p>c</p>');
  console.log(page.single('p').text(), page.single('p').size(), page.single('i').size(), page.find('div').single('p').text());
}
