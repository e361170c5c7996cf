// HTTP/2 in clear on Node, which counts what it serves.
//
// The first line on standard output is its URL; at SIGTERM it prints how many requests it took and
// how many sessions there were. With the argument `falling` it allows 100 streams a session, after
// 100 requests one, after 150 none at all, and 300 ms later 50.

import http2 from "node:http2";

const isFalling = process.argv[2] === "falling";
const sessions = new Set();
let [requests, opened] = [0, 0];

function allow(maxConcurrentStreams) {
  for (const session of sessions) session.settings({ maxConcurrentStreams });
}

const server = http2.createServer({ settings: { maxConcurrentStreams: 100 } });
server.on("session", (session) => {
  opened += 1;
  sessions.add(session);
  session.on("close", () => sessions.delete(session));
  session.on("error", () => {});
});
server.on("stream", (stream) => {
  requests += 1;
  if (isFalling && requests === 100) allow(1);
  if (isFalling && requests === 150) {
    allow(0);
    setTimeout(() => allow(50), 300);
  }
  stream.on("error", () => {});
  // Answers take a moment, so that streams are live when the bound falls below their number.
  setTimeout(() => {
    stream.respond({ ":status": 200 });
    stream.end("hello\n");
  }, 2);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.on("SIGTERM", () => {
  console.log(`requests ${requests}\nsessions ${opened}`);
  process.exit(0);
});
