import ws from 'k6/ws';
export default function () {
  ws.connect(`${__ENV.URL.replace('http', 'ws')}/ws`, (socket) => {
    socket.on('open', () => {
      socket.sendBinary(new Uint8Array([1, 2, 255]).buffer);
      try { socket.sendBinary(); } catch (e) { console.log('none', e.message); }
      try { socket.sendBinary('text'); } catch (e) { console.log('text', e.message); }
    });
    socket.on('message', () => console.log('a text'));
    socket.on('binaryMessage', (data) => {
      console.log(data instanceof ArrayBuffer, new Uint8Array(data).join(' '));
      socket.close(4000);
    });
    socket.on('close', (code) => console.log('close', code));
  });
}
