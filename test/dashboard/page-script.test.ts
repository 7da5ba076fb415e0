import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { browseDashboard, type BrowsedDashboard } from './support/browsed-dashboard.js';

// A browser on a busy machine takes its time.
jest.setTimeout(120_000);

let site: BrowsedDashboard;

beforeAll(async () => {
  site = await browseDashboard();
});

afterAll(async () => site.close());

describe('the keyboard', () => {
  it('skips to the content, opens the filter and follows a payout', async () => {
    const page = await site.open('payouts?state=rejected');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('content');
    await page.getByText('Filter').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Amount', { exact: true }).fill('9000');
    await page.keyboard.press('Enter');
    await page.waitForURL('**amount=9000**');
    await page.getByRole('link', { name: 'order:2045' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/payouts/order*2045');
    await page.context().close();
  });

  it('reaches every control, and shows which one it is at', async () => {
    const page = await site.open('payouts/order:2042');
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
});

describe('the script', () => {
  it('copies an address, a txhash and a command, and says so', async () => {
    const page = await site.open('payouts/order:2042', { permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = async (name: string): Promise<unknown> => {
      await page.getByRole('button', { name }).press('Enter');
      await page.getByRole('status').getByText('Copied').waitFor();
      return page.evaluate('navigator.clipboard.readText()');
    };
    expect(await copied('Copy address of order:2042')).toBe('TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');
    expect(await copied('Copy txhash of order:2042')).toBe('f00dbeef');
    expect(await copied('Copy the command payouts gateway status')).toBe(
      `payouts gateway status --account ${site.account.platformId} f00dbeef`,
    );
    await page.context().close();
  });

  it('shows times in the time zone of the reader, keeps that, and goes back', async () => {
    const page = await site.open('payouts/order:2042', { timezoneId: 'Europe/Berlin' });
    const created = page.locator('.history time').first();
    expect(await created.innerText()).toBe('2030-01-01 00:02:04 UTC');
    expect(await created.getAttribute('title')).toBe('2030-01-01 01:02:04 (Europe/Berlin)');
    await page.getByRole('button', { name: 'Show times in Europe/Berlin' }).press('Enter');
    expect(await created.innerText()).toBe('2030-01-01 01:02:04');
    await page.reload();
    expect(await created.innerText()).toBe('2030-01-01 01:02:04');
    expect(await page.getByText('Times are in Europe/Berlin.').isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Show times in UTC' }).click();
    expect(await created.innerText()).toBe('2030-01-01 00:02:04 UTC');
    await page.context().close();
  });

  it('is not needed: without it there is no button that does nothing, and search and filter work', async () => {
    const page = await site.open('payouts?state=', { javaScriptEnabled: false });
    expect(await page.getByRole('button').allInnerTexts()).toEqual([
      'Find',
      'Commands for the selected',
      'Commands for all on this page',
    ]);
    await page.getByRole('searchbox').fill('9000');
    await page.getByRole('button', { name: 'Find' }).click();
    expect(await page.locator('th.id a').allInnerTexts()).toEqual(['order:2045']);
    await page.getByText('Filter').click();
    await page.getByLabel('Amount', { exact: true }).fill('250');
    await page.getByRole('button', { name: 'Show payouts' }).click();
    expect(await page.locator('th.id a').allInnerTexts()).toEqual(['order:2042']);
    await page.context().close();
  });
});

describe('without a reload by hand', () => {
  it('a payout and its batch show what became of them, and every such page the present alarm', async () => {
    const { ledger } = site.account;
    const pages = await Promise.all([site.open('payouts/order:2047'), site.open('batch?name=september')]);
    const [payout, batch] = pages;
    expect(await payout.locator('.heading .badge').innerText()).toBe('queued');
    expect(await batch.locator('.progress h2').innerText()).toBe('0 % paid: 0 of 2, 1 failed or rejected, 1 left');
    await ledger.change({ payoutId: 'order:2047', from: 'queued', to: 'cancelled', by: 'ann', reason: 'wrong' });
    await payout.locator('.heading .badge').getByText('cancelled').waitFor();
    await batch
      .locator('.progress h2')
      .getByText('0 % paid: 0 of 2, 1 failed or rejected, 1 cancelled, 0 left')
      .waitFor();
    for (const page of pages) expect(await page.locator('#alarm').innerText()).toBe('Paused');
    await ledger.resume('ann', 'done');
    for (const page of pages) {
      await page.locator('#alarm').getByText('Sender without heartbeat').waitFor();
      expect(await page.title()).toMatch(/^Sender without heartbeat · /);
      await page.context().close();
    }
  });
});
