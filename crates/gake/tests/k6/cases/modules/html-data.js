import { parseHTML } from 'k6/html';
export default function () {
  const p = parseHTML('<p data-user-id="7" data-page-url="u" data-plain="x" data-two-words="y" data-id="8">t</p>').find('p');
  console.log(Object.entries(p.data()).map(([key, value]) => `${key}=${value}`).sort().join());
  for (const name of ['userId', 'userID', 'user-id', 'UserId', 'pageURL', 'pageUrl', 'plain', 'twoWords', 'none']) console.log(name, p.data(name));
}
