import grpc from 'k6/net/grpc';
import { check } from 'k6';
const client = new grpc.Client();
const methods = client.load([], 'echo.proto');
export default function () {
  console.log(methods.map((m) => `${m.full_method} ${m.package} ${m.service} ${m.name} ${m.is_client_stream} ${m.is_server_stream}`).join('; '));
  console.log(client.connect(__ENV.URL.replace('http://', ''), { plaintext: true, timeout: '5s' }));
  const response = client.invoke('gake.lab.v1.Echo/Say', { text: 'hé', delayMs: 1 });
  check(response, { 'is OK': (r) => r && r.status === grpc.StatusOK });
  console.log(Object.keys(response).sort().join(), response.message.text, response.message.number, response.error);
  console.log(response.headers['content-type'], Object.keys(response.trailers).length);
  const again = client.invoke('/gake.lab.v1.Echo/Say', { delay_ms: 1 }, { metadata: { 'x-a': 'b', 'x-bin': new Uint8Array([1, 255]) }, tags: { kind: 'again' }, timeout: '3s' });
  console.log(JSON.stringify(again.status), JSON.stringify(again.message.text));
  const none = client.invoke('gake.lab.v1.Echo/Say', { text: 'x' }, { discardResponseMessage: true });
  console.log(JSON.stringify(none.status), none.message);
  client.close();
  client.close();
}
