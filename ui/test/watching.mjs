// Watches a run in a real Chromium to its end, and prints what the page held meanwhile, as JSON: bytes
// of the heap after a collection, and nodes. Called with the address of the live page, and the seconds
// after which the run must have ended, by crates/gake/tests/pages/.

import assert from "node:assert/strict";
import { troublesOf, withBrowser } from "./browser.mjs";

const [address, limit] = process.argv.slice(2);
const pause = 500;
const deadline = Date.now() + limit * 1_000;

await withBrowser(async (browser) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const troubles = troublesOf(page);
  await page.goto(address);
  const running = page.locator(".bar .pill", { hasText: "Running" });
  await running.waitFor();
  const session = await context.newCDPSession(page);
  const looks = [];
  while ((await running.count()) > 0) {
    assert(Date.now() < deadline, `the page still shows a run in progress after ${limit} s`);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const { nodes } = await session.send("Memory.getDOMCounters");
    looks.push({ heap: usedSize, nodes });
    await page.waitForTimeout(pause);
  }
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify(looks));
});
