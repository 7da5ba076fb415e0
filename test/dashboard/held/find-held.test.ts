import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findHeld, type HeldFilter, type HeldPage } from '../../../src/dashboard/held/held-query.js';
import { openDashboard, type RunningDashboard } from '../support/running-dashboard.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';

let account: TestAccount;
let dashboard: RunningDashboard;

const IDS = Array.from({ length: 230 }, (_, index) => `h-${index}`);
const isRare = (payoutId: string): boolean => Number(payoutId.slice(2)) % 100 === 99;

beforeAll(async () => {
  account = openTestAccount();
  await account.ledger.enqueue(IDS.map((payoutId) => aPayout(payoutId)));
  for (const payoutId of IDS) {
    const rule = isRare(payoutId) ? 'rare' : 'day';
    await account.sender.holdPayout(payoutId, 0, {
      kind: 'policy',
      reason: 'wait',
      rule,
      message: 'm',
      isTampering: false,
    });
  }
  dashboard = await openDashboard(account);
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

/** Every page from the first to the last. */
async function readAll(filter: HeldFilter, searchMs?: number): Promise<HeldPage[]> {
  const pages: HeldPage[] = [];
  let after: string | undefined;
  do {
    const page = await findHeld(account.connection, { filter, after }, searchMs);
    pages.push(page);
    after = page.next;
  } while (after !== undefined);
  return pages;
}

const idsOf = (pages: readonly HeldPage[]): string[] =>
  pages.flatMap(({ payouts }) => payouts.map(({ payoutId }) => payoutId));

it('pages through all that are held, the first one held first, each once', async () => {
  const pages = await readAll({});
  expect(idsOf(pages)).toEqual(IDS);
  expect(pages.map(({ payouts }) => payouts.length)).toEqual([50, 50, 50, 50, 30]);
});

it('passes over the others where one rule is asked for', async () => {
  const pages = await readAll({ rule: 'rare' });
  expect(idsOf(pages)).toEqual(IDS.filter(isRare));
  expect(pages).toHaveLength(1);
  expect(pages[0]?.searched).toBe(230);
});

it('ends a page when its time is over, and the next one continues there', async () => {
  const pages = await readAll({ rule: 'rare' }, 0);
  expect(pages.map(({ searched }) => searched)).toEqual([100, 100, 30]);
  expect(idsOf(pages)).toEqual(IDS.filter(isRare));
});

it('leads from page to page', async () => {
  const seen: string[] = [];
  let path: string | undefined = '/held';
  while (path !== undefined) {
    const page: string = await dashboard.read(path);
    seen.push(...[...page.matchAll(/data-key="([^"]+)"/g)].map(([, payoutId = '']) => payoutId));
    path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(seen).toEqual(IDS);
});
