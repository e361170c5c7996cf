import http from 'k6/http';
export default function () {
  const results = http.batch([`${__ENV.URL}/echo`, ['GET']]);
  console.log(results.length, results[0].status, results[0].error, results[1].error);
  console.log(JSON.stringify(Object.keys(http.batch({ a: `${__ENV.URL}/echo`, b: { url: `${__ENV.URL}/echo`, name: 'x' } })).sort()));
  try { http.batch(5); } catch (e) { console.log(e.message); }
  console.log(http.batch([{ method: 5, url: `${__ENV.URL}/echo` }])[0].error);
}
