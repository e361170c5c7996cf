import { WritableStream, WritableStreamDefaultWriter } from 'k6/experimental/streams';
const tried = (f) => { try { console.log(f()); } catch (e) { console.log(e.name, e.message); } };
const awaited = async (f) => { try { console.log(await f()); } catch (e) { console.log(e.name, e.message); } };
export default async function () {
  const order = [];
  const stream = new WritableStream({
    start() { order.push('start'); },
    write(chunk) { order.push(`write ${chunk}`); },
    close() { order.push('close'); },
  });
  tried(() => stream.locked);
  const writer = stream.getWriter();
  tried(() => `${stream.locked} ${writer.desiredSize} ${writer instanceof WritableStreamDefaultWriter}`);
  tried(() => stream.getWriter());
  await writer.write(1);
  await writer.ready;
  const second = writer.write(2);
  tried(() => writer.desiredSize);
  await second;
  await writer.close();
  await writer.closed;
  console.log(order.join());
  await awaited(() => writer.write(3));
  await awaited(() => stream.close());
  const bad = new WritableStream({ write() { throw new Error('bad'); } }).getWriter();
  await awaited(() => bad.write(1));
  await awaited(() => bad.closed);
  const aborted = new WritableStream({ abort(why) { console.log('abort', why); } });
  await aborted.abort('why');
  aborted.getWriter().closed.catch((why) => console.log('closed', why));
  const wide = new WritableStream({}, { highWaterMark: 3, size: (chunk) => chunk.length }).getWriter();
  wide.write('ab');
  tried(() => wide.desiredSize);
  tried(() => new WritableStream({ type: 'bytes' }));
  tried(() => new WritableStream(null));
}
