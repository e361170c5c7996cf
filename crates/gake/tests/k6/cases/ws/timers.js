import ws from 'k6/ws';
export default function () {
  const response = ws.connect(`${__ENV.URL.replace('http', 'ws')}/ws`, null, (socket) => {
    let ticks = 0;
    socket.setInterval(() => {
      if (ticks === 3) return;
      ticks += 1;
      socket.send(`tick ${ticks}`);
    }, 20);
    socket.on('message', (data) => {
      console.log(data);
      if (data === 'tick 3') socket.setTimeout(() => socket.close(1000), 5);
    });
    for (const wrong of [0, -1]) {
      try { socket.setTimeout(() => {}, wrong); } catch (e) { console.log(e.message); }
      try { socket.setInterval(() => {}, wrong); } catch (e) { console.log(e.message); }
    }
    socket.on('close', (code) => console.log('close', code, ticks));
  });
  console.log(response.status);
}
