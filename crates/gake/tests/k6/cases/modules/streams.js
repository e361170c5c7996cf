import { ReadableStream, CountQueuingStrategy } from 'k6/experimental/streams';
import { setTimeout } from 'k6/timers';
function numbers() {
  let at = 0;
  return new ReadableStream(
    {
      start(controller) { controller.enqueue('first'); },
      pull(controller) { at += 1; if (at > 3) controller.close(); else controller.enqueue(at); },
    },
    { highWaterMark: 1, size: () => 1 },
  );
}
export default async function () {
  const stream = numbers();
  const reader = stream.getReader();
  console.log('locked', stream.locked);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    console.log('read', value);
  }
  await reader.closed;
  const later = new ReadableStream({
    start(controller) { setTimeout(() => { controller.enqueue('late'); controller.close(); }, 10); },
  }, new CountQueuingStrategy({ highWaterMark: 2 }));
  const slow = later.getReader();
  console.log((await slow.read()).value, (await slow.read()).done);
  slow.releaseLock();
  console.log('locked', later.locked);
  const broken = new ReadableStream({ pull() { throw new Error('no more'); } });
  try { await broken.getReader().read(); } catch (error) { console.log(error.message); }
  const cancelled = new ReadableStream({ cancel(why) { console.log('cancelled', why); } });
  await cancelled.cancel('enough');
}
