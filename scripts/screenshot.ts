/**
 * Takes the README's picture of the dashboard, docs/dashboard.png: a real dashboard over a real ledger, in a browser.
 * `npm run screenshot` after the pages have changed.
 */
import { writeFile } from 'node:fs/promises';
import { startLocalRedis } from '../src/local-redis.js';
import { launchChromium } from '../test/dashboard/support/launch-chromium.js';
import { openDashboard } from '../test/dashboard/support/running-dashboard.js';
import { fillAccount, openSampleAccount } from '../test/dashboard/support/sample-account.js';

const PICTURE = new URL('../docs/dashboard.png', import.meta.url);
/** A fixed account, and the sample's fixed clock: the same pages give the same picture. */
const PLATFORM_ID = 4242;
const SCREEN = { width: 1120, height: 780 };

const redis = await startLocalRedis();
process.env['REDIS_URL'] = redis.url;
const account = await openSampleAccount(PLATFORM_ID);
await fillAccount(account);
const dashboard = await openDashboard(account);
const browser = await launchChromium();
try {
  const page = await browser.newPage({ viewport: SCREEN, colorScheme: 'light' });
  await page.goto(dashboard.url);
  await page.waitForLoadState('load');
  const picture = await page.screenshot();
  await writeFile(PICTURE, picture);
  process.stdout.write(`docs/dashboard.png, ${Math.round(picture.length / 1024)} KB\n`);
} finally {
  await browser.close();
  await dashboard.close();
  await account.close();
  await redis.stop();
}
