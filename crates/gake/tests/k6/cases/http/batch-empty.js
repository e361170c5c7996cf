import http from 'k6/http';
export default function () {
  console.log(JSON.stringify(http.batch([])));
}
