// The real Chromium of the tests, and what its pages complain of.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

/** Runs `test` with a browser, which is closed after it. */
export async function withBrowser(test) {
  const places = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`);
  const executablePath = places.find((path) => existsSync(path));
  assert(executablePath, "chromium is needed: apt-get install chromium");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await test(browser);
  } finally {
    await browser.close();
  }
}

/** A list that gets every error and warning of a page. */
export function troublesOf(page) {
  const troubles = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(String(error)));
  return troubles;
}
