// What a socket that is not open throws, with the native function of k6.
import { WebSocket } from 'k6/websockets';

export default function () {
  const socket = new WebSocket('ws://127.0.0.1:1/');
  socket.onerror = () => {};
  for (const call of [() => socket.send('x'), () => socket.close(5)]) {
    try {
      call();
    } catch (error) {
      console.log(String(error));
    }
  }
  socket.ping();
}
