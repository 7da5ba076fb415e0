import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { writeGatewayFacts } from '../../src/ledger/gateway-facts.js';
import { launchChromium } from './support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

// A browser on a busy machine takes its time.
jest.setTimeout(120_000);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const LOOKS = [
  { width: 1440, height: 900, colorScheme: 'light' },
  { width: 1440, height: 900, colorScheme: 'dark' },
  { width: 390, height: 844, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
] as const;

const PAGES = [
  'payouts',
  'payouts?state=',
  'payouts?state=unknown',
  'payouts?state=completed',
  'payouts?state=cancelled&batch=none',
  'payouts?state=&amount=12x&reference=x',
  'payouts?q=nobody-has-this',
  'payouts/order:2042',
  'payouts/order%2F2044+a=b',
  'payouts/order:2046',
  'payouts/none',
  'batch?name=september',
  'activity',
];

let account: SampleAccount;
let dashboard: RunningDashboard;
let browser: Browser;

beforeAll(async () => {
  account = await openSampleAccount();
  await account.sendAs('wrong', { kind: 'rejected', message: 'Invalid address' }, { batch: 'september' });
  await fillAccount(account);
  await account.ledger.pause('ann', 'ticket 812');
  const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  dashboard = await openDashboard(account, { explorers: new Map([[7, 'https://explorer.example/tx/{txhash}']]) });
  browser = await launchChromium();
});

afterAll(async () => {
  await browser.close();
  await dashboard.close();
  await account.close();
});

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(dashboard.url + path);
  await page.waitForLoadState('load');
  return page;
}

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
    await expectNoFaults(await open(path));
  });

  it('finds nothing on a page that could not refresh', async () => {
    const page = await open('payouts');
    await page.context().setOffline(true);
    await page.waitForSelector('main.stale');
    await expectNoFaults(page);
  });

  it('finds nothing on the overview over several accounts', async () => {
    const { clock, platformId } = account;
    const several = await openDashboard({ clock, platformId: [platformId, platformId + 1] });
    const page = await browser.newPage();
    await page.goto(`${several.url}accounts`);
    await expectNoFaults(page);
    await several.close();
  });
});
