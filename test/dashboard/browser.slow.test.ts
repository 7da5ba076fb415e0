import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { systemClock } from '../../src/base/clock.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { until } from '../support/until.js';
import { browse, browseEveryState, type BrowsedDashboard } from './support/browsed-dashboard.js';
import { launchChromium } from './support/launch-chromium.js';
import { writeSampleBatches } from './support/live-account.js';
import { fillAccount, openSampleAccount } from './support/sample-account.js';

// A browser on a busy machine takes its time.
jest.setTimeout(120_000);

const WIDTHS = [390, 1280];
const NO_SCRIPT = { javaScriptEnabled: false };

let browser: Browser;
let site: BrowsedDashboard;

beforeAll(async () => {
  browser = await launchChromium();
});

afterEach(() => {
  expect(site.troubles.splice(0)).toEqual([]);
});

afterAll(async () => browser.close());

/** On a phone and on a desktop. */
async function onEachScreen(page: Page, look: () => Promise<void> = async () => Promise.resolve()): Promise<void> {
  await page.waitForLoadState('load');
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    await look();
  }
}

const focused = async (page: Page, property: string): Promise<unknown> =>
  page.evaluate(`document.activeElement.${property}`);

describe('payouts in every state', () => {
  beforeAll(async () => {
    site = await browseEveryState(browser);
  });
  afterAll(async () => site.close());

  it('are shown, failed and unknown ones first, with links to the history and the command', async () => {
    const page = await site.open('');
    expect(new URL(page.url()).pathname).toBe('/payouts');
    await onEachScreen(page, async () => {
      for (const message of ['the gateway reported a failure', 'no response within 60000 ms'])
        expect(await page.getByText(message).isVisible()).toBe(true);
    });

    await page.getByRole('link', { name: 'order/2044+a=b' }).click();
    await page.waitForURL('**/payouts/order*');
    await onEachScreen(page);
    expect(await page.locator('.history .badge').allInnerTexts()).toEqual(['queued', 'sending', 'unknown']);
    const commands = await page.locator('pre').allInnerTexts();
    expect(commands[1]).toMatch(/^payouts resolve --account \d+ order\/2044\+a=b --not-sent --key FILE --reason WHY$/);

    await page.getByRole('searchbox').fill('f00dbeef');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL('**/payouts/order*2042');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('order:2042');
    const states = ['queued', 'sending', 'in progress', 'failed'];
    expect(await page.locator('.history .badge').allInnerTexts()).toEqual(states);
    await onEachScreen(page);
    await page.context().close();
  });

  it('are on the board, with links from a job to its payout', async () => {
    const page = await site.open('payouts');
    await page.getByRole('link', { name: 'Diagnostics' }).click();
    await page.getByRole('link', { name: 'Bull Board' }).click();
    await page.waitForURL('**/board/**');
    await page.goto(`${site.dashboard.url}board/queue/withdraw`);
    await page.getByText('order:2042 · 250 of 7/USD · failed').first().waitFor();
    await page.getByText('order/2044+a=b · 12.5 of 7/USD · unknown').first().waitFor();
    await onEachScreen(page);
    const payoutId = 'order/2044+a=b';
    await page.getByRole('link', { name: toJobId({ payoutId }), exact: true }).click();
    await page.getByText('"TXYZop…VkAeBf"').first().waitFor();
    const popup = page.waitForEvent('popup');
    await page.getByText('Payout and its history').first().click();
    const payout = await popup;
    await payout.locator('.history').waitFor();
    expect(await payout.getByRole('heading', { level: 1 }).innerText()).toBe(payoutId);
    await page.getByRole('link', { name: 'Back to the payouts', exact: true }).click();
    await page.waitForURL(`${site.dashboard.url}payouts`);
    await page.context().close();
  });

  it('are reached by the keyboard: it skips to the content, opens the filter and follows a payout', async () => {
    const page = await site.open('payouts?state=rejected');
    await page.keyboard.press('Tab');
    expect(await focused(page, 'textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused(page, 'id')).toBe('content');
    await page.getByText('Filter').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Amount', { exact: true }).fill('9000');
    await page.keyboard.press('Enter');
    await page.waitForURL('**amount=9000**');
    await page.getByRole('link', { name: 'order:2045' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/payouts/order*2045');
    const controls = await page.locator('a:visible, button:visible, input:visible, summary:visible').count();
    const seen = new Set<string>();
    for (let index = 0; index < controls + 5; index += 1) {
      await page.keyboard.press('Tab');
      const [outline, markup] = await page.evaluate<[string, string]>(
        '[getComputedStyle(document.activeElement).outlineStyle, document.activeElement.outerHTML]',
      );
      if (markup.startsWith('<body')) break;
      expect([markup, outline]).toEqual([markup, expect.not.stringMatching(/^none$/)]);
      seen.add(markup);
    }
    expect(seen.size).toBe(controls);
    await page.context().close();
  });

  it('have an address, a txhash and a command that are copied, and times in the time zone of the reader', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const page = await site.open('payouts/order:2042', { permissions, timezoneId: 'Europe/Berlin' });
    const copied = async (name: string): Promise<unknown> => {
      await page.getByRole('button', { name }).press('Enter');
      await page.getByRole('status').getByText('Copied').waitFor();
      return page.evaluate('navigator.clipboard.readText()');
    };
    expect(await copied('Copy address of order:2042')).toBe('TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');
    expect(await copied('Copy txhash of order:2042')).toBe('f00dbeef');
    const command = `payouts gateway status --account ${site.account.platformId} f00dbeef`;
    expect(await copied('Copy the command payouts gateway status')).toBe(command);

    const created = page.locator('.history time').first();
    const [utc, local] = ['2030-01-01 00:02:04 UTC', '2030-01-01 01:02:04'];
    expect(await created.innerText()).toBe(utc);
    expect(await created.getAttribute('title')).toBe(`${local} (Europe/Berlin)`);
    await page.getByRole('button', { name: 'Show times in Europe/Berlin' }).press('Enter');
    expect(await created.innerText()).toBe(local);
    await page.reload();
    expect(await created.innerText()).toBe(local);
    await page.getByRole('button', { name: 'Show times in UTC' }).click();
    expect(await created.innerText()).toBe(utc);
    await page.context().close();
  });

  it('need no script: without it there is no button that does nothing, and search and filter work', async () => {
    const page = await site.open('payouts?state=', NO_SCRIPT);
    const buttons = ['Find', 'Commands for the selected', 'Commands for all on this page'];
    expect(await page.getByRole('button').allInnerTexts()).toEqual(buttons);
    await page.getByRole('searchbox').fill('9000');
    await page.getByRole('button', { name: 'Find' }).click();
    expect(await page.locator('th.id a').allInnerTexts()).toEqual(['order:2045']);
    await page.getByText('Filter').click();
    await page.getByLabel('Amount', { exact: true }).fill('250');
    await page.getByRole('button', { name: 'Show payouts' }).click();
    expect(await page.locator('th.id a').allInnerTexts()).toEqual(['order:2042']);
    await page.context().close();
  });

  it('and their batch show what became of them without a reload, and every such page the present alarm', async () => {
    const { ledger } = site.account;
    const pages = await Promise.all([site.open('payouts/order:2047'), site.open('batch?name=september')]);
    const [payout, batch] = pages;
    const progress = batch.locator('.progress h2');
    expect(await payout.locator('.heading .badge').innerText()).toBe('queued');
    expect(await progress.innerText()).toBe('0 % paid: 0 of 2, 1 failed or rejected, 1 left');
    await ledger.change({ payoutId: 'order:2047', from: 'queued', to: 'cancelled', by: 'ann', reason: 'wrong' });
    await payout.locator('.heading .badge').getByText('cancelled').waitFor();
    await progress.getByText('0 % paid: 0 of 2, 1 failed or rejected, 1 cancelled, 0 left').waitFor();
    for (const page of pages) expect(await page.locator('#alarm').innerText()).toBe('Paused');
    await ledger.resume('ann', 'done');
    for (const page of pages) {
      await page.locator('#alarm').getByText('Sender without heartbeat').waitFor();
      expect(await page.title()).toMatch(/^Sender without heartbeat · /);
      await page.context().close();
    }
  });
});

describe('a page that refreshes itself', () => {
  const SCROLLED_TO_PX = 300;
  let redis: LocalRedis;

  beforeAll(async () => {
    redis = await startLocalRedis();
    site = await browse(browser, await openSampleAccount(), { redisUrl: redis.url, clock: systemClock });
  });
  afterAll(async () => {
    await site.close();
    await redis.stop();
  });

  it.each(WIDTHS)('at %d pixels keeps focus, text in the search field and scroll position', async (width) => {
    const page = await site.open('payouts', { viewport: { width, height: 500 } });
    const search = page.getByRole('searchbox');
    await search.fill('order:20');
    await page.evaluate(`scrollTo(0, ${SCROLLED_TO_PX})`);
    const before = await page.locator('.as-of').innerText();
    await until('refreshed', async () => (await page.locator('.as-of').innerText()) !== before);
    expect([await search.inputValue(), await focused(page, 'name')]).toEqual(['order:20', 'q']);
    // Where lines appear or end above, the browser moves the position with what is in view.
    expect(Number(await page.evaluate('scrollY'))).toBeGreaterThan(SCROLLED_TO_PX / 4);
    await page.context().close();
  });

  it('turns red while Redis hangs, recovers by itself, and says when it is not live', async () => {
    const page = await site.open('payouts');
    const pulse = page.locator('.pulse.bad h1').getByText('Redis does not respond');
    process.kill(redis.pid, 'SIGSTOP');
    try {
      await pulse.waitFor({ timeout: 10_000 });
      expect(await page.title()).toContain('Redis does not respond');
    } finally {
      process.kill(redis.pid, 'SIGCONT');
    }
    await pulse.waitFor({ state: 'detached' });
    await site.dashboard.close();
    await page.getByText('This page could not be refreshed').waitFor({ timeout: 10_000 });
    expect(await page.title()).toMatch(/^Not live/);
    await page.context().close();
    // The connection was refused.
    site.troubles.splice(0);
  });
});

describe('long tables', () => {
  const UUID = '3f2504e0-4f89-11d3-9a0c-0305e82c';
  const LONG = 'the destination does not exist on this network, or its memo is missing, or it is closed';

  beforeAll(async () => {
    const account = await openSampleAccount();
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
    site = await browse(browser, account);
  });
  afterAll(async () => site.close());

  const HEIGHTS = `[...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().height)`;
  /** Ids, addresses and txhashes that are on more than one line. */
  const BROKEN = `[...document.querySelectorAll('th.id a, td.id a, td .mono')]
    .filter((text) => text.getClientRects().length !== 1 || text.getBoundingClientRect().height > 24)
    .map((text) => text.textContent)`;

  it.each([
    ...['payouts', 'payouts?state=', 'payouts?state=rejected', 'payouts?q=12345.67', 'held', 'batch?name=long'],
    ...['batches', 'activity', 'audit'],
  ])('/%s has one line a row, with whole ids, and only its tables scroll sideways', async (path) => {
    const page = await site.open(path);
    await onEachScreen(page, async () => {
      const heights = await page.evaluate<number[]>(HEIGHTS);
      const rows = path === 'payouts' ? heights.slice(0, 5) : heights;
      expect(rows.length).toBeGreaterThan(1);
      expect(rows.filter((height) => height < 36 || height > 40)).toEqual([]);
      expect(await page.evaluate(BROKEN)).toEqual([]);
    });
    if (path === 'payouts?state=') {
      expect(await page.locator('tbody tr').count()).toBe(50);
      expect(await page.evaluate(`document.querySelector('table').getBoundingClientRect().height`)).toBeLessThan(1_900);
      expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThan(2_400);
    }
    await page.context().close();
  });

  it('have one command for all selected payouts, without a script, and nothing is changed', async () => {
    const { account } = site;
    const page = await site.open('held', NO_SCRIPT);
    const [first = '', second = ''] = await page.locator('th.id a').allInnerTexts();
    for (const payoutId of [first, second]) await page.getByLabel(`Select ${payoutId}`).check();
    const before = await account.redis.xlen(account.connection.keys.events);
    await page.getByRole('button', { name: 'Commands for the selected' }).click();
    await page.waitForURL('**/held?*');
    expect(await page.locator('#selected h2').innerText()).toBe('For the 2 selected payouts');
    const commands = ['release', 'cancel'].map(
      (verb) => `payouts ${verb} --account ${account.platformId} ${first} ${second} --reason WHY`,
    );
    expect(await page.locator('#selected pre').allInnerTexts()).toEqual(commands);
    expect(await page.getByLabel(`Select ${second}`).isChecked()).toBe(true);
    expect(await account.redis.xlen(account.connection.keys.events)).toBe(before);
    await page.context().close();
  });

  it('have one for all of the page, which keeps the filter', async () => {
    const page = await site.open(`payouts?state=rejected&amount=12345.67`, NO_SCRIPT);
    await page.getByRole('button', { name: 'Commands for all on this page' }).click();
    await page.waitForURL('**/payouts?*all=1*');
    const [retry = '', cancel = ''] = await page.locator('#selected pre').allInnerTexts();
    expect(retry.split(UUID)).toHaveLength(31);
    expect(retry).toMatch(/^payouts retry --account \d+ .* --reason WHY$/s);
    expect(cancel).toMatch(/^payouts cancel /);
    await page.context().close();
  });

  it('mix up no selected payouts: one looks like an option, may have been paid, or has left the page', async () => {
    const picked = ['-x', 'order/2044%2Ba%3Db', 'order:2041', 'gone', 'order:2045'];
    const page = await site.dashboard.read(`/payouts?state=&pick=${picked.join('&pick=')}`);
    const text = page.replace(/<[^>]+>/g, '').replace(/\s+/g, ' ');
    expect(text).toContain(`payouts cancel --account ${site.account.platformId} --reason WHY -- order:2045 -x`);
    expect(text).toContain('May have been paid, so decide each on its own page: order/2044+a=b');
    expect(text).toContain('Nothing to do for 1 payout');
    expect(text).toContain('1 more selected payout left this page meanwhile');
    expect(text).not.toMatch(/payouts (cancel|retry|release) [^.]*order:2041/);
  });

  it.each([
    ...['/payouts', '/batch?name=long', '/batches', '/payouts/-x', '/policy', '/diagnostics'].map((path) => [
      path,
      true,
    ]),
    ...['/payouts?state=', '/held', '/activity', '/audit', '/payouts?q=none', '/none'].map((path) => [path, false]),
  ] as [string, boolean][])('%s is live, or says when it was made', async (path, isLive) => {
    const time = 'as of <time class="utc" datetime="2030-';
    const expected = isLive ? `live · ${time}` : `<p class="as-of">${time}[^]*<a href="">Reload</a>`;
    expect(await site.dashboard.read(path)).toMatch(new RegExp(expected));
  });
});
