import { WebSocket } from 'k6/websockets';
export default function () {
  const ws = new WebSocket(`${__ENV.URL.replace('http', 'ws')}/ws`);
  ws.onopen = () => {
    throw new Error('in open');
  };
}
