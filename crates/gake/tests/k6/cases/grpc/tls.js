// args: --insecure-skip-tls-verify
import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  client.connect(__ENV.TLS_URL.replace('https://', ''));
  console.log(client.invoke('gake.lab.v1.Echo/Say', { text: 'tls' }).message.text);
}
