import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { toJobId } from '../../src/queues/payout-queues.js';
import { launchChromium } from './support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

// A browser on a busy machine takes its time.
jest.setTimeout(90_000);

const PASSWORD = 'secret';
const SCREENS = [
  { name: 'a desktop', width: 1280, height: 900 },
  { name: 'a phone', width: 390, height: 844 },
];

let account: SampleAccount;
let dashboard: RunningDashboard;
let browser: Browser;

beforeAll(async () => {
  account = await openSampleAccount();
  await fillAccount(account);
  dashboard = await openDashboard(account, { password: PASSWORD });
  browser = await launchChromium();
});

afterAll(async () => {
  await browser.close();
  await dashboard.close();
  await account.close();
});

interface Visit {
  readonly page: Page;
  /** What went wrong on the pages: refused content, failed scripts, requests to other hosts. */
  readonly troubles: string[];
}

async function visit(screen: { readonly width: number; readonly height: number }): Promise<Visit> {
  const httpCredentials = { username: 'payouts', password: PASSWORD };
  const context = await browser.newContext({ viewport: screen, httpCredentials });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const troubles: string[] = [];
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
  return { page, troubles };
}

async function fitsTheScreen(page: Page, width: number): Promise<void> {
  await page.waitForLoadState('load');
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
}

describe.each(SCREENS)('on $name', (screen) => {
  it('shows a failed and an unknown payout, with links to the history and the command', async () => {
    const { page, troubles } = await visit(screen);
    await page.goto(dashboard.url);
    expect(new URL(page.url()).pathname).toBe('/payouts');
    await fitsTheScreen(page, screen.width);
    expect(await page.getByText('the gateway reported a failure').isVisible()).toBe(true);
    expect(await page.getByText('no response within 60000 ms').isVisible()).toBe(true);

    await page.getByRole('link', { name: 'order/2044+a=b' }).click();
    await page.waitForURL('**/payouts/order*');
    await fitsTheScreen(page, screen.width);
    expect(await page.locator('.history .badge').allInnerTexts()).toEqual(['queued', 'sending', 'unknown']);
    const commands = await page.locator('pre').allInnerTexts();
    expect(commands[1]).toMatch(/^payouts resolve --account \d+ order\/2044\+a=b --not-sent --reason WHY$/);

    await page.getByRole('searchbox').fill('f00dbeef');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL('**/payouts/order*2042');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('order:2042');
    expect(await page.locator('.history .badge').allInnerTexts()).toEqual([
      'queued',
      'sending',
      'in progress',
      'failed',
    ]);
    await fitsTheScreen(page, screen.width);
    expect(troubles).toEqual([]);
    await page.context().close();
  });

  it('shows the same payouts on the board, with links from a job to its payout', async () => {
    const { page, troubles } = await visit(screen);
    await page.goto(dashboard.url);
    await page.getByRole('link', { name: 'Diagnostics' }).click();
    await page.getByRole('link', { name: 'Bull Board' }).click();
    await page.waitForURL('**/board/**');
    await page.goto(`${dashboard.url}board/queue/withdraw`);
    await page.getByText('order:2042 · 250 of 7/USD · failed').first().waitFor();
    await page.getByText('order/2044+a=b · 12.5 of 7/USD · unknown').first().waitFor();
    await fitsTheScreen(page, screen.width);

    for (const payoutId of ['order/2044+a=b', 'order:2042']) {
      await page.goto(`${dashboard.url}board/queue/withdraw`);
      await page.getByRole('link', { name: toJobId({ payoutId }), exact: true }).click();
      await page.getByText('"TXYZop…VkAeBf"').first().waitFor();
      const popup = page.waitForEvent('popup');
      await page.getByText('Payout and its history').first().click();
      const payout = await popup;
      await payout.locator('.history').waitFor();
      expect(await payout.getByRole('heading', { level: 1 }).innerText()).toBe(payoutId);
    }
    await page.getByRole('link', { name: 'Back to the payouts', exact: true }).click();
    await page.waitForURL(`${dashboard.url}payouts`);
    expect(troubles).toEqual([]);
    await page.context().close();
  });
});
