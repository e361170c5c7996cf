import http from 'k6/http';
// The server gives it back within JSON: without quotes.
const page = '<form action=/echo?x=1><input name=q value=1+2><input type=hidden name=h value=v></form>'
  + '<a href=/echo?y=2>n</a><form id=p method=post action=/echo><input name=z value=9>'
  + '<button name=bt value=bv type=submit>b</button></form>';
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, page);
  console.log(r.html('a').text(), r.html().find('form').size(), r.html('a').get(0).pathname());
  for (const args of [
    { formSelector: 'form:not(#p)' },
    { formSelector: '#p', fields: { z: '8', n: 'm' } },
    { formSelector: '#p', submitSelector: 'nothing', params: { tags: { a: 'b' } } },
  ]) {
    const s = r.submitForm(args);
    console.log(s.request.method, s.url, s.request.body);
  }
  console.log(r.clickLink().url);
  for (const wrong of [() => r.clickLink({ selector: 'b' }), () => r.submitForm({ formSelector: 'i' })]) {
    try { wrong(); } catch (error) { console.log(String(error)); }
  }
}
