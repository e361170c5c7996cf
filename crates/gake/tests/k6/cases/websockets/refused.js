import { WebSocket } from 'k6/websockets';
export default function () {
  for (const url of ['ws://127.0.0.1:1/', `${__ENV.URL.replace('http', 'ws')}/fast`]) {
    const ws = new WebSocket(url);
    const name = url.endsWith('/fast') ? 'plain' : 'nobody';
    ws.onopen = () => console.log(name, 'open');
    ws.onerror = (e) => console.log(name, 'error', e.type, e.error, Object.keys(e).sort().join());
    ws.onclose = (e) => console.log(name, 'close', e.type, ws.readyState);
  }
}
