import grpc from 'k6/net/grpc';
const client = new grpc.Client();
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true, reflect: true, reflectMetadata: { a: 'b' } });
  const response = client.invoke('gake.lab.v1.Echo/Say', { text: 'reflected' });
  console.log(JSON.stringify(response.status), response.message.text);
}
