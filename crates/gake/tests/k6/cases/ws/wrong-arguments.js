import ws from 'k6/ws';
export default function () {
  const url = `${__ENV.URL.replace('http', 'ws')}/ws`;
  const told = (name, run) => {
    try { run(); console.log(name, 'ran'); } catch (e) { console.log(name, e.message); }
  };
  told('no function', () => ws.connect(url, {}));
  told('nothing', () => ws.connect(url));
  told('too much', () => ws.connect(url, {}, () => {}, 1));
  told('compression', () => ws.connect(url, { compression: 'brotli' }, () => {}));
  told('tags', () => ws.connect(url, { tags: { a: {} } }, () => {}));
  told('prepare', () => ws.connect(url, (socket) => {
    socket.on('close', (code) => console.log('close', code));
    throw new Error('in prepare');
  }));
  told('handler', () => ws.connect(url, (socket) => {
    socket.on('open', () => { throw new Error('in open'); });
    socket.on('close', (code) => console.log('close', code));
  }));
  told('timer', () => ws.connect(url, (socket) => {
    socket.setTimeout(() => { throw new Error('in timer'); }, 1);
    socket.on('close', (code) => console.log('close', code));
  }));
}
