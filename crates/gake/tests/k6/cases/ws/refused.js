import ws from 'k6/ws';
export default function () {
  const handler = (socket) => socket.on('error', (e) => console.log('handler', e.error()));
  const shown = (r) => console.log(r.status, JSON.stringify(r.url), r.headers === null, JSON.stringify(r.body), r.error);
  shown(ws.connect('ws://127.0.0.1:1/', handler));
  const plain = ws.connect(`${__ENV.URL.replace('http', 'ws')}/fast`, handler);
  shown(plain);
  console.log(Object.keys(plain).sort());
  shown(ws.connect('http://127.0.0.1:1/', handler));
}
