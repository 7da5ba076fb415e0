import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { launchChromium } from './launch-chromium.js';
import { writeSampleBatches } from './live-account.js';
import { openDashboard, type RunningDashboard } from './running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './sample-account.js';
import { signSample } from './sign-sample.js';

/** A browser in front of the dashboard of an account that has payouts in every state, a pause, names of currencies, and signed payouts that a policy holds. */
export interface BrowsedDashboard {
  readonly account: SampleAccount;
  readonly dashboard: RunningDashboard;
  readonly browser: Browser;
  /** Opens a page in a browser of its own. @param path - without a slash in front */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  close(): Promise<void>;
}

export async function browseDashboard(): Promise<BrowsedDashboard> {
  const account = await openSampleAccount();
  await account.sendAs('wrong', { kind: 'rejected', message: 'Invalid address' }, { batch: 'september' });
  const signed = await signSample(account);
  await fillAccount(account);
  await account.ledger.pause('ann', 'ticket 812');
  const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  await writeSampleBatches(account, ['september']);
  const explorers = new Map([[7, 'https://explorer.example/tx/{txhash}']]);
  const dashboard = await openDashboard(account, { explorers, ...signed.options });
  const browser = await launchChromium();
  return {
    account,
    dashboard,
    browser,
    async open(path, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      await page.goto(dashboard.url + path);
      await page.waitForLoadState('load');
      return page;
    },
    async close() {
      await browser.close();
      await dashboard.close();
      await account.close();
      await signed.close();
    },
  };
}
