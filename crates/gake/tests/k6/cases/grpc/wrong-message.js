import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  for (const request of [{ nope: 1 }, { text: 1 }]) {
    try { client.invoke('gake.lab.v1.Echo/Say', request); } catch (e) { console.log(e.name, e.message); }
  }
}
