import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default async function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  const calls = [1, 2, 3].map((n) => client.asyncInvoke('gake.lab.v1.Echo/Say', { text: `${n}`, delayMs: 5 }));
  const all = await Promise.all(calls);
  console.log(all.map((r) => `${r.status === grpc.StatusOK} ${r.message.text}`).join(', '));
  const failed = await client.asyncInvoke('gake.lab.v1.Echo/Say', { status: 7 });
  console.log(JSON.stringify(failed.status), failed.error.message);
}
