import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { until } from '../../support/until.js';
import { writeSampleBatches } from './live-account.js';
import { openDashboard, type RunningDashboard } from './running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './sample-account.js';
import { signSample } from './sign-sample.js';

const PASSWORD = 'secret';

/** An account's dashboard, which asks for a password, in front of a browser that knows it. */
export interface BrowsedDashboard {
  readonly account: SampleAccount;
  readonly dashboard: RunningDashboard;
  /** What went wrong on the pages: refused content, failed scripts, requests to other hosts. */
  readonly troubles: string[];
  /** Opens a page in a context of its own. @param path - without a slash in front */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  close(): Promise<void>;
}

export async function browse(
  browser: Browser,
  account: SampleAccount,
  options: Parameters<typeof openDashboard>[1] = {},
): Promise<BrowsedDashboard> {
  const dashboard = await openDashboard(account, { password: PASSWORD, ...options });
  const troubles: string[] = [];
  return {
    ...{ account, dashboard, troubles },
    async open(path, given = {}) {
      const httpCredentials = { username: 'payouts', password: PASSWORD };
      const viewport = { width: 1280, height: 900 };
      const context = await browser.newContext({ viewport, httpCredentials, ...given });
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      page.on('pageerror', (error) => troubles.push(error.message));
      page.on('console', (message) => {
        // A page that refreshes itself shows that Redis was slow, as on a busy machine.
        const isSlowRedis = message.text().includes('status of 503');
        if (message.type() === 'error' && !isSlowRedis) troubles.push(message.text());
      });
      page.on('request', (request) => {
        const isOwn = request.url().startsWith(dashboard.url) || request.url().startsWith('data:');
        if (!isOwn) troubles.push(`asked another host: ${request.url()}`);
      });
      await until('the page answers', async () => (await page.goto(dashboard.url + path))?.status() !== 503);
      await page.waitForLoadState('load');
      return page;
    },
    async close() {
      await dashboard.close();
      await account.close();
    },
  };
}

/** An account that has payouts in every state, a pause, names of currencies, and signed payouts that a policy holds. */
export async function browseEveryState(browser: Browser): Promise<BrowsedDashboard> {
  const account = await openSampleAccount();
  await account.sendAs('wrong', { kind: 'rejected', message: 'Invalid address' }, { batch: 'september' });
  const signed = await signSample(account);
  await fillAccount(account);
  await account.ledger.pause('ann', 'ticket 812');
  const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  await writeSampleBatches(account, ['september']);
  const explorers = new Map([[7, 'https://explorer.example/tx/{txhash}']]);
  const site = await browse(browser, account, { explorers, ...signed.options });
  return {
    ...site,
    async close() {
      await site.close();
      await signed.close();
    },
  };
}
