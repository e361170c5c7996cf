import http from 'k6/http';
export default async function () {
  const a = http.asyncRequest('GET', `${__ENV.URL}/fast`);
  const b = await http.asyncRequest('POST', `${__ENV.URL}/echo`, 'x');
  console.log((await a).status, b.json('body'));
}
