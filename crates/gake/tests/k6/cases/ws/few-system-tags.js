// System tags that are off select nothing, and leave their names to the script.
import ws from 'k6/ws';

const found = ['count>0'];
export const options = {
  systemTags: ['method'],
  thresholds: {
    'ws_sessions{status:101}': found,
    'ws_sessions{mine:1}': found,
    'ws_sessions{subproto:own}': found,
  },
};

export default function () {
  const tags = { mine: '1', subproto: 'own' };
  const url = `${__ENV.URL.replace('http', 'ws')}/ws`;
  ws.connect(url, { tags }, (socket) => socket.on('open', () => socket.close()));
}
