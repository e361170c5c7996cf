import http from 'k6/http';

// Not UTF-8: as long as the text is not changed, its bytes are sent.
const text = open('./latin1.txt');
export const options = { iterations: 1 };

export default function () {
  const url = `${__ENV.URL}/echo`;
  console.log(text.length);
  console.log(http.post(url, text).json('body_bytes'));
  console.log(http.post(url, `${text}!`).json('body_bytes'));
  for (const path of ['.', '']) {
    try {
      open(path);
    } catch (e) {
      console.log(e.name);
    }
  }
}
