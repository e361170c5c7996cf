import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load(null, 'echo.proto');
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  const shown = (name, r) => console.log(name, JSON.stringify(r.status), r.message.text === '', r.error.code, r.error.message, r.error.details.length, Object.keys(r.headers).length, r.trailers['content-type']);
  shown('not found', client.invoke('gake.lab.v1.Echo/Say', { status: grpc.StatusNotFound }));
  shown('unavailable', client.invoke('gake.lab.v1.Echo/Say', { status: grpc.StatusUnavailable }));
  const several = client.invoke('gake.lab.v1.Echo/Repeat', { text: 'x', count: 2 });
  console.log(JSON.stringify(several.status), several.message.number, several.error.message);
  const all = Object.keys(grpc).filter((name) => /^(Status|Health)/.test(name)).sort();
  console.log(all.map((name) => `${name}=${JSON.stringify(grpc[name])}`).join(' '));
}
