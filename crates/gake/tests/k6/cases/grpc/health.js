import grpc from 'k6/net/grpc';
const client = new grpc.Client();
export default function () {
  client.connect(__ENV.URL.replace('http://', ''), { plaintext: true });
  console.log(client.healthCheck().status === grpc.HealthCheckServing, JSON.stringify(client.healthCheck('gake.lab.v1.Echo')));
  try { client.healthCheck('nope'); } catch (e) { console.log(e.name, e.message); }
}
