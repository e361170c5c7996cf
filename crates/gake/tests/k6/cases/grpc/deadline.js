import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  const late = client.invoke('gake.lab.v1.Echo/Say', { text: 'x', delayMs: 2000 }, { timeout: 50 });
  console.log(late.status === grpc.StatusDeadlineExceeded, late.error.message, late.message.text === '');
}
