import { WebSocket } from 'k6/websockets';
import { setTimeout, setInterval, clearInterval } from 'k6/timers';
export default function () {
  for (let user = 0; user < 2; user += 1) {
    const ws = new WebSocket(`${__ENV.URL.replace('http', 'ws')}/ws`);
    ws.onopen = () => {
      let count = 0;
      const ticks = setInterval(() => {
        count += 1;
        ws.send(`${user} ${count}`);
        if (count === 3) clearInterval(ticks);
      }, 5);
    };
    ws.onmessage = (e) => {
      console.log(e.data);
      if (e.data.endsWith(' 3')) setTimeout(() => ws.close(), 5);
    };
    ws.onclose = () => console.log(user, 'close', ws.readyState);
  }
}
