import ws from 'k6/ws';
import { WebSocket } from 'k6/websockets';
const url = __ENV.URL.replace('http', 'ws') + '/ws';
const leave = (socket) => socket.on('open', () => socket.close());
export default function () {
  ws.connect(url, { tags: { name: 'mine', a: 'b' } }, leave);
  ws.connect(url, {}, leave);
  for (const params of [{ tags: { name: 'new', c: 'd' } }, {}]) {
    const socket = new WebSocket(url, null, params);
    socket.onopen = () => socket.close();
  }
}
