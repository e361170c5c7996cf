import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  const late = new grpc.Stream(client, 'gake.lab.v1.Echo/Chat', { timeout: '50ms' });
  late.on('error', (error) => console.log('late', JSON.stringify(error.code), error.message));
  late.on('end', () => console.log('late end'));
}
