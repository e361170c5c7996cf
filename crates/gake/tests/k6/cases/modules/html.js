import { parseHTML } from 'k6/html';
export default function () {
  const d = parseHTML('<div id=x class="a b"><p>one</p><p data-k="v">two</p><a href="/q">link</a></div>'); console.log(d.find('p').size(), d.find('p').last().text(), d.find('a').attr('href'), d.find('p').eq(1).data('k'), d.find('div').html());
}
