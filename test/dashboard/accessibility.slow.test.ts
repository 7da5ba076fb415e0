import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { browseEveryState, type BrowsedDashboard } from './support/browsed-dashboard.js';
import { launchChromium } from './support/launch-chromium.js';
import { openDashboard } from './support/running-dashboard.js';

// A browser on a busy machine takes its time.
jest.setTimeout(120_000);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const LOOKS = [1280, 390].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, height: 900, colorScheme })),
);

const PAGES = [
  ...['payouts', 'payouts?state=', 'payouts?state=unknown', 'payouts?state=completed', 'payouts?range=day'],
  ...['payouts?state=cancelled&batch=none', 'payouts?state=&amount=12x&reference=x', 'payouts?state=&all=1'],
  ...['payouts?q=nobody-has-this', 'payouts/order:2042', 'payouts/order%2F2044+a=b', 'payouts/order:2046'],
  ...['payouts/none', 'payouts/signed:large', 'batch?name=september', 'batches', 'held', 'held?rule=none'],
  ...['held?kind=policy&rule=day&reason=wait', 'held?all=1', 'diagnostics', 'activity', 'policy', 'audit'],
];

let browser: Browser;
let site: BrowsedDashboard;

beforeAll(async () => {
  browser = await launchChromium();
  site = await browseEveryState(browser);
});

afterAll(async () => {
  await browser.close();
  await site.close();
});

/** What axe finds, in words. */
async function findFaults(page: Page): Promise<string[]> {
  const results = await page.evaluate<AxeResults>('axe.run()');
  return results.violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
}

async function expectNoFaults(page: Page): Promise<void> {
  // By the debugger's protocol: the pages' own policy lets no such script in.
  await page.evaluate(AXE);
  for (const { width, height, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    expect({ width, colorScheme, faults: await findFaults(page) }).toEqual({ width, colorScheme, faults: [] });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
  await page.context().close();
}

describe('axe', () => {
  it.each(PAGES)('finds nothing on /%s, wide and narrow, light and dark', async (path) => {
    await expectNoFaults(await site.open(path));
  });

  it('finds nothing on a page that could not refresh', async () => {
    const page = await site.open('payouts');
    await page.context().setOffline(true);
    await page.waitForSelector('main.stale');
    await expectNoFaults(page);
  });

  it('finds nothing on the overview over several accounts', async () => {
    const { clock, platformId } = site.account;
    const several = await openDashboard({ clock, platformId: [platformId, platformId + 1] });
    const page = await browser.newPage();
    await page.goto(`${several.url}accounts`);
    await expectNoFaults(page);
    await several.close();
  });
});
