import http from 'k6/http';

// A response without a status has the URL as it was written.
export default function () {
  const urls = ['not a url', 'http://127.0.0.1:1/a b', 'http://127.0.0.1:1/ä?x y', 'ftp://127.0.0.1/a b', 'HTTP://127.0.0.1:1/'];
  for (const url of urls) {
    const response = http.get(url);
    const digest = http.get(url, { auth: 'digest' });
    console.log(response.url === url, response.request.url, digest.url === url);
  }
}
