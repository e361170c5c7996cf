// Definitions that are not there.
import grpc from 'k6/net/grpc';
const client = new grpc.Client();
for (const [imports, name] of [
  [[], 'no.proto'],
  [['defs'], 'no.proto'],
  [['defs', 'others'], 'no.proto'],
  [[], './no.proto'],
  [[], '../grpc/no.proto'],
  [['defs'], 'a/../no.proto'],
  [[], '/no.proto'],
]) {
  try {
    client.load(imports, name);
  } catch (error) {
    console.log(`${imports} ${name}: ${error}`);
  }
}
export default function () {}
