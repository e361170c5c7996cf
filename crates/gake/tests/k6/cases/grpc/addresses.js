import grpc from 'k6/net/grpc';
const client = new grpc.Client();
export default function () {
  for (const address of ['<%= @url %>', '', 'localhost', 'http://127.0.0.1:1', '127.0.0.1:99999']) {
    try {
      client.connect(address, { plaintext: true, timeout: '2s' });
    } catch (e) {
      console.log(e.message);
    }
  }
}
