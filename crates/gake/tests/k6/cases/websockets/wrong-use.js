import { WebSocket } from 'k6/websockets';
export default function () {
  const url = `${__ENV.URL.replace('http', 'ws')}/ws`;
  const told = (name, run) => {
    try { run(); console.log(name, 'ran'); } catch (e) { console.log(name, e.message || String(e)); }
  };
  told('scheme', () => new WebSocket('http://127.0.0.1:1/'));
  told('fragment', () => new WebSocket(`${url}#a`));
  const ws = new WebSocket(url);
  told('too early', () => ws.send('x'));
  told('ping', () => ws.ping());
  told('event', () => ws.addEventListener('nothing', () => {}));
  told('binaryType', () => { ws.binaryType = 'text'; });
  ws.onopen = () => ws.close();
  ws.onclose = () => told('too late', () => ws.send('x'));
}
