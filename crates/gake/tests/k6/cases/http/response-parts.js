// A response has its parts itself, also those not read yet.
import http from 'k6/http';
export default function () {
  const response = http.get(`${__ENV.URL}/fast`);
  console.log(Object.keys(response).join());
  console.log(Object.keys({ ...response }).join());
  console.log(Object.values(response).map((value) => typeof value).join());
  console.log(Object.entries(Object.assign({}, response)).length);
  const found = [];
  for (const name in response) found.push(name);
  console.log(found.join());
  console.log(Object.getOwnPropertyNames(response).join());
  console.log(response.hasOwnProperty('status'), response.hasOwnProperty('json'), 'body' in response, 'nobody' in response);
  const { status, headers, ...others } = response;
  console.log(status, typeof headers, Object.keys(others).length);
  const copy = JSON.parse(JSON.stringify(response));
  console.log(Object.keys(copy).join(), copy.status, copy.body === response.body);
  response.status = 299;
  console.log(response.status);
  try {
    delete response.status;
  } catch (e) {
    console.log(e.name);
  }
}
