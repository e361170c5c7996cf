import http from 'k6/http';

const URL = 'http://cookie.test/a/b';
const PLACES = [URL, 'http://cookie.test/', 'http://sub.cookie.test/a/', 'https://cookie.test/a/b'];

function tried(name, f) {
  try {
    console.log(name, JSON.stringify(f()));
  } catch (error) {
    console.log(name, `${error.name}: ${error.message}`);
  }
}

function set(...rest) {
  const jar = new http.CookieJar();
  return [jar.set(...rest), PLACES.map((place) => jar.cookiesForURL(place))];
}

const DATES = [
  'Mon, 02 Jan 2006 15:04:05 MST',
  'Mon, 02 Jan 2006 15:04:05 GMT',
  'Mon, 02 Jan 2096 15:04:05 GMT',
  'Tue, 02 Jan 2096 15:04:05 GMT',
  'Mon, 02-Jan-2096 15:04:05 GMT',
  'Monday, 02-Jan-96 15:04:05 GMT',
  'Mon, 2 Jan 2096 15:04:05 GMT',
  'Mon, 02 Jan 2096 15:04:05 +0100',
  'Mon, 02 Jan 2096 25:04:05 GMT',
  'Mon, 31 Feb 2096 15:04:05 GMT',
  'Mon, 02 Jan 2096 15:04:05 GMT and more',
  'Mon Jan  2 15:04:05 2096',
  '2096-01-02T15:04:05Z',
  'soon',
  '',
  5,
];

export default function () {
  for (const expires of DATES) tried(`expires ${expires}`, () => set(URL, 'k', 'v', { expires }));
  for (const max_age of [0, -1, 5, 5.7, '5', '-5', 'x', null]) {
    tried(`max_age ${max_age}`, () => set(URL, 'k', 'v', { max_age }));
  }
  for (const domain of ['cookie.test', '.cookie.test', 'other.test', 'sub.cookie.test', null, 5]) {
    tried(`domain ${domain}`, () => set(URL, 'k', 'v', { domain }));
  }
  for (const path of ['/a', '/z', '/', 'a']) tried(`path ${path}`, () => set(URL, 'k', 'v', { path }));
  for (const secure of [true, 'true', 1, false, 'false', '']) {
    tried(`secure ${secure}`, () => set(URL, 'k', 'v', { secure }));
  }
  for (const value of ['v w', 'v;w', '"v"', 'v,w', 'v=w', '', 5, null, undefined, {}]) {
    tried(`value ${value}`, () => set(URL, 'k', value));
  }
  for (const options of [null, undefined, 'x', 5]) {
    tried(`options ${options}`, () => set(URL, 'k', 'v', options));
  }
  tried('nothing', () => set());
  tried('no name', () => set(URL));
  tried('no value', () => set(URL, 'k'));
  tried('no URL', () => set('', 'k', 'v'));
  tried('a wrong URL', () => set('::', 'k', 'v'));
  tried('a path', () => set('/x', 'k', 'v'));
  tried('the longest path first', () => {
    const jar = new http.CookieJar();
    jar.set(URL, 'k', 'a', { path: '/' });
    jar.set(URL, 'k', 'b', { path: '/a' });
    return jar.cookiesForURL(URL);
  });
  tried('expired', () => {
    const jar = new http.CookieJar();
    jar.set(URL, 'k', 'a');
    jar.set(URL, 'k', 'b', { expires: 'Mon, 02 Jan 2006 15:04:05 GMT' });
    return jar.cookiesForURL(URL);
  });
}
