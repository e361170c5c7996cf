import ws from 'k6/ws';
import { check } from 'k6';
export default function () {
  const url = `${__ENV.URL.replace('http', 'ws')}/ws`;
  const params = { headers: { 'X-Own': '1' }, tags: { kind: 'echo' } };
  const response = ws.connect(url, params, (socket) => {
    socket.on('open', () => {
      console.log('open');
      socket.send('one');
      socket.send('two');
    });
    let count = 0;
    socket.on('message', (data) => {
      console.log('message', typeof data, data);
      count += 1;
      if (count === 2) socket.ping();
    });
    socket.on('message', (data) => check(data, { 'is known': (d) => d === 'one' || d === 'two' }));
    socket.on('pong', () => {
      console.log('pong');
      socket.close();
    });
    socket.on('close', (code) => console.log('close', code));
    socket.on('error', (e) => console.log('error', e.error()));
  });
  console.log('after', response.status, response.url === url, JSON.stringify(response.body), JSON.stringify(response.error));
  console.log(response.headers.Upgrade, response.headers.Connection, 'Sec-Websocket-Accept' in response.headers);
}
