import ws from 'k6/ws';
ws.connect('ws://127.0.0.1:1/', () => {});
export default function () {}
