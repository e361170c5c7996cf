import { WebSocket } from 'k6/websockets';
export default function () {
  const ws = new WebSocket(`${__ENV.URL.replace('http', 'ws')}/ws`);
  console.log(ws.binaryType);
  ws.onopen = () => ws.send(new Uint8Array([97, 98, 99]).buffer);
  ws.onmessage = async (e) => {
    console.log('size', e.data.size);
    console.log(await e.data.text(), (await e.data.arrayBuffer()).byteLength);
    ws.close(4001, 'done');
  };
  ws.onclose = () => console.log('close');
}
