import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
const told = (name, run) => {
  try { run(); console.log(name, 'ran'); } catch (e) { console.log(name, e.name, e.message); }
};
export default function () {
  const chat = 'gake.lab.v1.Echo/Chat';
  told('unconnected', () => new grpc.Stream(client, chat));
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  told('no method', () => new grpc.Stream(client, 'gake.lab.v1.Echo/Nope'));
  told('empty', () => new grpc.Stream(client, ''));
  told('param', () => new grpc.Stream(client, chat, { nope: 1 }));
  told('metadata', () => new grpc.Stream(client, chat, { metadata: 'x' }));
  const stream = new grpc.Stream(client, chat);
  told('event', () => stream.on('nope', () => 1));
  told('null', () => stream.write(null));
  told('undefined', () => stream.write());
  stream.on('end', () => console.log('end'));
  stream.end();
}
