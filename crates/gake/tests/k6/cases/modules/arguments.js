import { sleep, group, randomSeed, check, fail } from 'k6';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
const tried = (name, call) => {
  try {
    const result = call();
    console.log(name, typeof result === 'object' ? JSON.stringify(result) : String(result));
  } catch (error) {
    console.log(name, 'throws', String(error));
  }
};
export default function () {
  for (const pause of ['0.01', undefined, null, 'x', false, {}, [0.01]]) tried('sleep', () => sleep(pause));
  tried('sleep', () => sleep());
  tried('group', () => group(5, () => 7));
  tried('group', () => group());
  tried('group', () => group('x'));
  tried('group', () => group('x', 5));
  tried('group', () => group(null, () => 3));
  tried('group', () => group('later', async () => 5));
  tried('randomSeed', () => randomSeed('5'));
  tried('randomSeed', () => randomSeed());
  tried('randomBytes', () => new Uint8Array(crypto.randomBytes('4')).length);
  tried('randomBytes', () => crypto.randomBytes());
  tried('md5', () => crypto.md5(5, 'hex'));
  tried('md5', () => crypto.md5());
  tried('sha256', () => crypto.sha256('a', 5));
  tried('hmac', () => crypto.hmac('sha256', 5, 'x', 'hex'));
  tried('b64encode', () => encoding.b64encode(5));
  tried('b64encode', () => encoding.b64encode('a?b', 7));
  tried('b64decode', () => encoding.b64decode(1234, 5, 5));
  tried('check', () => check());
  tried('check', () => check(1, null));
  tried('fail', () => fail(5));
}
