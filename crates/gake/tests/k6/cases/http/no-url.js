import http from 'k6/http';
export default function () {
  const url = `${__ENV.URL}/fast`;
  const page = http.get(url);
  for (const wrong of [undefined, null, page, { url }, [url], 5, true, new String(url)]) {
    const r = http.get(wrong);
    console.log(r.status, r.error_code, JSON.stringify(r.url));
  }
  console.log(http.get(http.url`${url}`).status, http.request('GET', undefined).error_code, http.post({}, 'x').error_code);
}
