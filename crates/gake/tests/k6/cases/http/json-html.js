// A page where JSON was expected, as when a proxy answers.
import http from 'k6/http';
export default function () {
  const response = http.get(`${__ENV.URL}/fast`);
  for (const read of [() => response.json(), () => response.json('a.b'), () => response.json().a.b]) {
    try {
      console.log(read());
    } catch (e) {
      console.log(`${e}`);
    }
  }
}
