import http from 'k6/http';

// As written: a blank makes it a request that most servers refuse.
export default function () {
  for (const query of ['a=b%20c', 'a=b c', 'q= x', 'q=x ', 'q="x"', 'q=é', '%zz']) {
    const response = http.get(`${__ENV.URL}/?${query}`);
    console.log(query, response.status, response.request.url.endsWith(query));
  }
}
