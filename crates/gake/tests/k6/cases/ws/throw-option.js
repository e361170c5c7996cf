// args: --throw
import ws from 'k6/ws';
export default function () {
  try {
    ws.connect('ws://127.0.0.1:1/', () => {});
  } catch (e) {
    console.log('caught', e.message);
  }
}
