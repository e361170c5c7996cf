import grpc from 'k6/net/grpc';
const client = new grpc.Client();
const early = [];
let tell = (...words) => early.push(words.join(' '));
const told = (name, run) => {
  try { run(); tell(name, 'ran'); } catch (e) { tell(name, e.name, e.message); }
};
told('connect in init', () => client.connect('127.0.0.1:1', { plaintext: true }));
told('invoke in init', () => client.invoke('a.B/C', {}));
client.load([], 'echo.proto');
export default function () {
  tell = console.log;
  tell(early.join('; '));
  const address = __ENV.URL.replace('http://', '');
  const say = 'gake.lab.v1.Echo/Say';
  told('load', () => client.load([], 'echo.proto'));
  told('unconnected', () => client.invoke(say, {}));
  told('close', () => client.close());
  told('refused', () => client.connect('127.0.0.1:1', { plaintext: true, timeout: '2s' }));
  told('connect param', () => client.connect(address, { plaintext: true, nope: 1 }));
  told('connect timeout', () => client.connect(address, { plaintext: true, timeout: 'x' }));
  client.connect(address, { plaintext: true });
  told('no method', () => client.invoke('gake.lab.v1.Echo/Nope', {}));
  told('no slash', () => client.invoke('foo', {}));
  told('empty', () => client.invoke('', {}));
  told('no request', () => client.invoke(say));
  told('null request', () => client.invoke(say, null));
  told('param', () => client.invoke(say, {}, { nope: 1 }));
  told('metadata', () => client.invoke(say, {}, { metadata: 'x' }));
  told('metadata value', () => client.invoke(say, {}, { metadata: { a: 1 } }));
  told('metadata bytes', () => client.invoke(say, {}, { metadata: { 'a-bin': 'x' } }));
  client.close();
  told('closed', () => client.invoke(say, {}));
}
