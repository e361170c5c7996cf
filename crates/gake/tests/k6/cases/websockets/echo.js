import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
export default function () {
  const url = `${__ENV.URL.replace('http', 'ws')}/ws`;
  const ws = new WebSocket(url, null, { tags: { kind: 'echo' } });
  console.log(ws.url === url, ws.readyState, ws.bufferedAmount, JSON.stringify(ws.extensions), JSON.stringify(ws.protocol));
  ws.binaryType = 'arraybuffer';
  ws.onopen = (e) => {
    console.log('open', e.type, ws.readyState, Object.keys(e).sort().join(), typeof e.timestamp);
    ws.send('one');
    ws.send(new Uint8Array([1, 2, 255]).buffer);
  };
  let count = 0;
  ws.addEventListener('message', (e) => {
    count += 1;
    const data = typeof e.data === 'string' ? e.data : new Uint8Array(e.data).join(' ');
    console.log('message', e.type, data, Object.keys(e).sort().join());
    check(e, { 'has data': (m) => !!m.data });
    if (count === 2) ws.ping();
  });
  ws.addEventListener('pong', (e) => {
    console.log('pong', e.type);
    ws.close();
    console.log('closing', ws.readyState);
  });
  ws.onclose = (e) => console.log('close', e.type, ws.readyState, Object.keys(e).sort().join());
  ws.onerror = (e) => console.log('error', e.error);
}
