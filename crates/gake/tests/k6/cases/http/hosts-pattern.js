import http from 'k6/http';
export const options = { hosts: { '*.shop.test': '127.0.0.1', 'a.shop.test': '127.0.0.1' } };
export default function () {
  const port = __ENV.URL.split(':').pop();
  for (const host of ['a', 'b', 'c.d']) {
    console.log(http.get(`http://${host}.shop.test:${port}/fast`).status);
  }
}
