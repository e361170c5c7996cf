// Follows a run in a real Chromium from its start to its report. Called with the address of the
// live page and the file that the report is saved to by crates/gake/tests/pages/.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { troublesOf, withBrowser } from "./browser.mjs";

const [address, saved] = process.argv.slice(2);
const shots = process.env.GAKE_SHOTS;
await withBrowser(follow);

async function open(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  const page = await context.newPage();
  const troubles = troublesOf(page);
  await page.goto(address);
  return { page, troubles };
}

async function follow(browser) {
  const [one, gone] = [await open(browser), await open(browser)];
  const { page } = one;
  const traffic = page.locator("figure.chart", { has: page.getByRole("heading", { name: "Requests per second" }) });
  await traffic.locator(".u-over").waitFor();
  await gone.page.close();
  assert.match(await page.locator(".bar .pill").first().textContent(), /^● Running \d:\d\d of \d:\d\d$/);
  // What the reader does outlives updates: a hidden series, the focus, the cursor, the zoom.
  const key = traffic.locator(".key", { has: page.locator(".name", { hasText: /^sent$/ }) });
  await key.click();
  const canvas = await traffic.locator("canvas").elementHandle();
  const stop = page.getByRole("button", { name: "Stop the run" });
  assert.equal(await stop.count(), 1, "the address has the token");
  assert(!page.url().includes("token"), "the token is no longer in the address");
  await stop.focus();
  const place = traffic.locator(".place");
  // A key on the slider changes the rate of the run: the data say so.
  const slider = page.getByRole("slider", { name: "Load in percent of the plan" });
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".rate output").textContent === "110 %");
  assert.equal(await page.evaluate(() => document.activeElement.type), "range", "the focus stays");
  await stop.focus();
  await traffic.locator(".u-over").hover({ position: { x: 20, y: 50 } });
  const before = await sent(page);
  await page.waitForFunction((before) => Number(document.querySelector(".identity dd").textContent.replaceAll(",", "")) > before, before);
  assert.equal(await key.getAttribute("aria-pressed"), "false");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Stop the run");
  assert.notEqual(await place.textContent(), "", "the cursor is still there");
  assert(await canvas.evaluate((canvas) => canvas.isConnected), "the chart was not made again");
  if (shots) await picture(page, "live-running");
  // After a reload the page shows everything so far, and can still stop the run.
  await page.reload();
  await traffic.locator(".u-over").waitFor();
  assert((await sent(page)) >= before);
  assert.equal(await slider.inputValue(), "110");
  assert.equal(await stop.count(), 1);
  await stop.click();
  const save = page.getByRole("button", { name: "Save the report" });
  await save.waitFor();
  assert.match(await page.locator(".verdict .line").textContent(), /interrupted/);
  assert.equal(await page.getByText("the rate was set to 110 % of the plan by hand: 330/s").count(), 1);
  assert.equal(await page.locator(".bar .pill", { hasText: "Running" }).count(), 0);
  const [file] = await Promise.all([page.waitForEvent("download"), save.click()]);
  await file.saveAs(saved);
  if (shots) await picture(page, "live-ended");
  assert.deepEqual(one.troubles, []);
}

/** The number of requests sent so far. */
async function sent(page) {
  return Number((await page.locator(".identity dd").first().textContent()).replaceAll(",", ""));
}

async function picture(page, name) {
  mkdirSync(shots, { recursive: true });
  for (const width of [420, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(100);
      await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}
