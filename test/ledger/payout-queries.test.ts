import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { listPayouts, readPayout, readPayouts, type ListOptions } from '../../src/ledger/reads/payout-queries.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** Reads all pages; `between` runs after each. */
async function readPages(options: ListOptions, between: () => Promise<void> = async () => Promise.resolve()) {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await listPayouts(account.connection, { ...options, ...(cursor === undefined ? {} : { cursor }) });
    pages.push(page.payouts.map(({ payoutId }) => payoutId));
    cursor = page.next;
    await between();
  } while (cursor !== undefined);
  return pages;
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `p${index}`);

describe('listPayouts', () => {
  it('lists a state in the order in which the payouts came into it, page by page', async () => {
    await account.ledger.enqueue(names(7).map((name) => aPayout(name)));
    for (const payoutId of ['p5', 'p1', 'p3']) {
      await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
    }
    expect(await readPages({ state: 'queued', limit: 2 })).toEqual([['p0', 'p2'], ['p4', 'p6'], []]);
    expect(await readPages({ state: 'cancelled', limit: 2 })).toEqual([['p5', 'p1'], ['p3']]);
    expect(await readPages({ state: 'unknown' })).toEqual([[]]);
  });

  it('lists from the newest backwards when asked to', async () => {
    await account.ledger.enqueue(names(5).map((name) => aPayout(name)));
    expect(await readPages({ newestFirst: true, limit: 2 })).toEqual([['p4', 'p3'], ['p2', 'p1'], ['p0']]);
  });

  it('lists the queued ones where nothing is said, 100 a page', async () => {
    await account.ledger.enqueue(names(101).map((name) => aPayout(name)));
    expect((await readPages({})).map(({ length }) => length)).toEqual([100, 1]);
  });

  it('lists a batch in the order of acceptance, whatever the state', async () => {
    await account.ledger.enqueue([aPayout('p', { batch: 'b' }), aPayout('q'), aPayout('r', { batch: 'b' })]);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await readPages({ batch: 'b', limit: 1 })).toEqual([['p'], ['r'], []]);
  });

  it('skips none and shows none twice while payouts leave and others come', async () => {
    const first = names(60);
    await account.ledger.enqueue(first.map((name) => aPayout(name)));
    let iteration = 0;
    const listed = await readPages({ state: 'queued', limit: 7 }, async () => {
      // The head of the line, already listed, leaves; new ones come behind.
      for (const payoutId of first.slice(iteration * 7, iteration * 7 + 7)) {
        await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
      }
      if (iteration < 3) await account.ledger.enqueue([aPayout(`new${iteration}`)]);
      iteration += 1;
    });
    expect(listed.flat()).toEqual([...first, 'new0', 'new1', 'new2']);
  });
});

describe('reading payouts', () => {
  beforeEach(async () => account.ledger.enqueue([aPayout('p'), aPayout('q', { amount: '3' })]));

  it('reads payouts in the order asked for, and leaves out those that do not exist', async () => {
    const payouts = await readPayouts(account.connection, ['q', 'nobody', 'p']);
    expect(payouts.map(({ payoutId, amount }) => [payoutId, amount])).toEqual([
      ['q', '3'],
      ['p', '12.5'],
    ]);
    expect(await readPayouts(account.connection, [])).toEqual([]);
  });

  it('reads one, or finds that there is none', async () => {
    expect(await readPayout(account.connection, 'q')).toMatchObject({ payoutId: 'q', amount: '3', state: 'queued' });
    expect(await readPayout(account.connection, 'nobody')).toBeUndefined();
  });
});
