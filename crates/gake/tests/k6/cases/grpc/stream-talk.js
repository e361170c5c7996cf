import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  // Each message is sent when the last one has come back.
  const stream = new grpc.Stream(client, 'gake.lab.v1.Echo/Chat');
  let turns = 0;
  stream.on('data', (message) => {
    turns += 1;
    if (turns < 5) stream.write({ text: `${message.text}${turns}` });
    else stream.end();
    if (turns === 5) console.log(message.text, message.number);
  });
  stream.on('end', () => {
    console.log('end', turns);
    client.close();
  });
  stream.write({ text: 't' });
}
