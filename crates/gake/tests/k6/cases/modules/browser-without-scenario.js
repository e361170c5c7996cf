import { browser } from 'k6/browser';
export default async function () {
  const page = await browser.newPage();
  await page.close();
}
