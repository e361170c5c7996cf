import http from 'k6/http';
export default function () {
  const u = `${__ENV.URL}/echo`; console.log(http.post(u, 'a').status, http.put(u, 'b').status, http.patch(u, 'c').status, http.del(u).status, http.head(u).status, http.options(u).status, http.request('PURGE', u).status);
}
