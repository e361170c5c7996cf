import http from 'k6/http';

export const options = { iterations: 1 };

export default function () {
  const url = `${__ENV.URL}/fast`;
  for (const call of [
    () => http.get(),
    () => http.post(),
    () => http.request(),
    () => http.batch(),
    () => http.file(),
    () => http.request('', url),
    () => http.get(url, { compression: 'foo' }),
    () => http.get(url, { responseCallback: 5 }),
    () => http.setResponseCallback(5),
    () => http.post(url, 5).json(),
    () => open('x'),
  ]) {
    try {
      const response = call();
      console.log(response.status, response.error, response.error_code);
    } catch (e) {
      console.log(e.name, e.constructor.name, e instanceof Error, e.message);
    }
  }
}
