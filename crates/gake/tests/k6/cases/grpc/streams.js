import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
const heard = (name) => {
  const told = [];
  const stream = new grpc.Stream(client, `gake.lab.v1.Echo/${name}`, { metadata: { 'x-a': 'b' }, tags: { kind: name } });
  stream.on('data', (message) => told.push(`data ${message.text} ${message.number}`));
  stream.on('error', (error) => told.push(`error ${JSON.stringify(error.code)} ${error.message} ${error.details.length}`));
  stream.on('end', () => console.log(name, told.join('; ')));
  return stream;
};
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  const chat = heard('Chat');
  for (const text of ['a', 'b', 'c']) chat.write({ text });
  chat.end();
  chat.end();
  chat.write({ text: 'too late' });
  const collect = heard('Collect');
  ['x', 'y'].forEach((text) => collect.write({ text }));
  collect.end();
  const repeat = heard('Repeat');
  repeat.write({ text: 'r', count: 3, every_ms: 1 });
  repeat.end();
  const failing = heard('Chat');
  failing.write({ text: 'ok' });
  failing.write({ status: 5 });
}
