import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { until } from '../support/until.js';
import { launchChromium } from './support/launch-chromium.js';
import { writeSampleBatches } from './support/live-account.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

// A browser on a busy machine takes its time.
jest.setTimeout(120_000);

const UUID = '3f2504e0-4f89-11d3-9a0c-0305e82c';
const LONG = 'the destination does not exist on this network, or its memo is missing, or it is closed';

let account: SampleAccount;
let dashboard: RunningDashboard;
let browser: Browser;

beforeAll(async () => {
  account = await openSampleAccount();
  for (let index = 0; index < 60; index += 1) {
    const payoutId = `${UUID}${1_000 + index}`;
    const given = { batch: 'long', reference: `Invoice ${index} of the customer in the south`, amount: '12345.67' };
    if (index % 2 === 0) await account.sendAs(payoutId, { kind: 'rejected', message: LONG }, given);
    else {
      await account.enqueue(payoutId, given);
      await account.sender.holdPayout(payoutId, 0, { ...HOLD, message: LONG });
    }
  }
  await account.enqueue('-x', { batch: 'long' });
  await fillAccount(account);
  for (let index = 0; index < 3; index += 1) await account.ledger.pause('ann', `${LONG} ${index}`);
  await account.ledger.resume('ann', LONG);
  await writeSampleBatches(account, ['long', 'september']);
  dashboard = await openDashboard(account);
  browser = await launchChromium();
});

afterAll(async () => {
  await browser.close();
  await dashboard.close();
  await account.close();
});

async function open(path: string, width: number, javaScriptEnabled = true): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, javaScriptEnabled });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  // A busy Redis may be too slow for a page.
  await until('the page answers', async () => (await page.goto(dashboard.url + path))?.ok() === true);
  await page.waitForLoadState('load');
  return page;
}

const HEIGHTS = `[...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().height)`;
/** Ids, addresses and txhashes that are on more than one line. */
const BROKEN = `[...document.querySelectorAll('th.id a, td.id a, td .mono')]
  .filter((text) => text.getClientRects().length !== 1 || text.getBoundingClientRect().height > 24)
  .map((text) => text.textContent)`;

describe.each([1280, 390])('at %i pixels', (width) => {
  it.each([
    'payouts',
    'payouts?state=',
    'payouts?state=rejected',
    'payouts?q=12345.67',
    'held',
    'batch?name=long',
    'batches',
    'activity',
    'audit',
  ])('/%s has one line a row, with whole ids, and only its tables scroll sideways', async (path) => {
    const page = await open(path, width);
    const heights = await page.evaluate<number[]>(HEIGHTS);
    const rows = path === 'payouts' ? heights.slice(0, 5) : heights;
    expect(rows.length).toBeGreaterThan(1);
    for (const height of rows) expect(height).toBeGreaterThanOrEqual(36);
    for (const height of rows) expect(height).toBeLessThanOrEqual(40);
    expect(await page.evaluate(BROKEN)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    await page.context().close();
  });
});

it('50 payouts take 2,000 pixels', async () => {
  const page = await open('payouts?state=', 1280);
  expect(await page.locator('tbody tr').count()).toBe(50);
  expect(await page.evaluate(`document.querySelector('table').getBoundingClientRect().height`)).toBeLessThan(1_900);
  expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThan(2_400);
  await page.context().close();
});

describe('selected payouts', () => {
  it('have one command for all of them, without a script, and nothing is changed', async () => {
    const page = await open('held', 1280, false);
    const ids = await page.locator('th.id a').allInnerTexts();
    const [first = '', second = ''] = ids;
    await page.getByLabel(`Select ${first}`).check();
    await page.getByLabel(`Select ${second}`).check();
    const before = await account.redis.xlen(account.connection.keys.events);
    await page.getByRole('button', { name: 'Commands for the selected' }).click();
    await page.waitForURL('**/held?*');
    expect(await page.locator('#selected h2').innerText()).toBe('For the 2 selected payouts');
    expect(await page.locator('#selected pre').allInnerTexts()).toEqual([
      `payouts release --account ${account.platformId} ${first} ${second} --reason WHY`,
      `payouts cancel --account ${account.platformId} ${first} ${second} --reason WHY`,
    ]);
    expect(await page.getByLabel(`Select ${second}`).isChecked()).toBe(true);
    expect(await account.redis.xlen(account.connection.keys.events)).toBe(before);
    await page.context().close();
  });

  it('are those of the page by the other button, which keeps the filter', async () => {
    const page = await open(`payouts?state=rejected&amount=12345.67`, 1280, false);
    await page.getByRole('button', { name: 'Commands for all on this page' }).click();
    await page.waitForURL('**/payouts?*all=1*');
    const [retry = '', cancel = ''] = await page.locator('#selected pre').allInnerTexts();
    expect(retry.split(UUID)).toHaveLength(31);
    expect(retry).toMatch(/^payouts retry --account \d+ .* --reason WHY$/s);
    expect(cancel).toMatch(/^payouts cancel /);
    await page.context().close();
  });

  it('are not mixed up where one looks like an option, may have been paid, or has left the page', async () => {
    const page = await dashboard.read(
      '/payouts?state=&pick=-x&pick=order/2044%2Ba%3Db&pick=order:2041&pick=gone&pick=order:2045',
    );
    const text = page.replace(/<[^>]+>/g, '').replace(/\s+/g, ' ');
    expect(text).toContain(`payouts cancel --account ${account.platformId} --reason WHY -- order:2045 -x`);
    expect(text).toContain('May have been paid, so decide each on its own page: order/2044+a=b');
    expect(text).toContain('Nothing to do for 1 payout');
    expect(text).toContain('1 more selected payout left this page meanwhile');
    expect(text).not.toMatch(/payouts (cancel|retry|release) [^.]*order:2041/);
  });
});

it('every page is live or says when it was made', async () => {
  const time = 'as of <time class="utc" datetime="2030-';
  for (const path of ['/payouts', '/batch?name=long', '/batches', '/payouts/-x', '/policy', '/diagnostics'])
    expect(await dashboard.read(path)).toContain(`live · ${time}`);
  for (const path of ['/payouts?state=', '/held', '/activity', '/audit', '/payouts?q=none', '/none'])
    expect(await dashboard.read(path)).toMatch(new RegExp(`<p class="as-of">${time}[^]*<a href="">Reload</a>`));
});
