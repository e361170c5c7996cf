// args: -u 1 -i 2
import { browser, devices } from 'k6/browser';
export const options = { scenarios: { ui: { executor: 'shared-iterations', options: { browser: { type: 'chromium' } } } }, thresholds: { browser_http_req_failed: ['rate<1'] } };
export default async function () {
  console.log(typeof browser.newContext, typeof devices);
  const page = await browser.newPage();
  await page.goto('http://127.0.0.1:1/');
}
