import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findPayouts, type PayoutFilter } from '../../src/ledger/reads/payout-queries.js';
import type { PayoutInput } from '../../src/ledger/payout.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** Accepts payouts one after another, a second apart. */
async function enqueue(...payouts: (Partial<PayoutInput> & { payoutId: string })[]): Promise<void> {
  for (const payout of payouts) {
    await account.ledger.enqueue([aPayout(payout.payoutId, payout)]);
    account.clock.advance(1_000);
  }
}

const cancel = async (payoutId: string) => account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });

async function findAll(filter: PayoutFilter, limit = 100) {
  const found: string[] = [];
  let searched = 0;
  let after: string | undefined;
  do {
    const page = await findPayouts(account.connection, filter, limit, after);
    expect(page.payouts.length).toBeLessThanOrEqual(limit);
    found.push(...page.payouts.map(({ payoutId }) => payoutId));
    searched += page.searched;
    after = page.next;
  } while (after !== undefined);
  return { found, searched };
}

const find = async (filter: PayoutFilter, limit?: number) => (await findAll(filter, limit)).found;

describe('findPayouts', () => {
  it('finds by address, with or without its tag, by a part of the reference, and by amount', async () => {
    await enqueue(
      { payoutId: 'a', addressTo: 'wallet-9' },
      { payoutId: 'b', addressTo: 'wallet-9:77', reference: 'Invoice 12/2030' },
      { payoutId: 'c', addressTo: 'wallet-90', reference: 'invoice 13/2030', amount: '3.50' },
      { payoutId: 'd', addressTo: 'wallet-8', amount: '3.5' },
    );
    expect(await find({ address: 'wallet-9' })).toEqual(['b', 'a']);
    expect(await find({ address: 'wallet-9:77' })).toEqual(['b']);
    expect(await find({ reference: 'INVOICE 1' })).toEqual(['c', 'b']);
    expect(await find({ amount: '3.5' })).toEqual(['d', 'c']);
    expect(await find({ amount: '3.5', reference: 'invoice' })).toEqual(['c']);
    expect(await find({ address: 'nobody' })).toEqual([]);
  });

  it('finds an address in any spelling of its wallet', async () => {
    const cash = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
    await enqueue(
      { payoutId: 'ton', addressTo: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF:5' },
      { payoutId: 'cash', addressTo: `bitcoincash:${cash}` },
      { payoutId: 'xrp', addressTo: 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59:1' },
    );
    const ton = '0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E';
    expect(await find({ address: ton })).toEqual(['ton']);
    expect(await find({ address: `${ton}:5` })).toEqual(['ton']);
    expect(await find({ address: `${ton}:6` })).toEqual([]);
    // What is before the colon of raw TON is no wallet.
    expect(await find({ address: '0' })).toEqual([]);
    expect(await find({ address: cash.toUpperCase() })).toEqual(['cash']);
    expect(await find({ address: 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu' })).toEqual(['xrp']);
  });

  it('finds in all states those first that changed last, in one state and in a batch, page by page', async () => {
    await enqueue(
      ...['a', 'b', 'c', 'd', 'e'].map((payoutId) => ({ payoutId, ...(payoutId > 'b' ? { batch: 'May' } : {}) })),
    );
    await cancel('b');
    await cancel('d');
    for (const limit of [1, 2, 3, 100]) {
      expect(await find({}, limit)).toEqual(['d', 'b', 'e', 'c', 'a']);
      expect(await find({ state: 'queued' }, limit)).toEqual(['e', 'c', 'a']);
      expect(await find({ batch: 'May' }, limit)).toEqual(['e', 'd', 'c']);
      expect(await find({ batch: 'May', state: 'cancelled' }, limit)).toEqual(['d']);
    }
  });

  it('finds by the time of the last change, the first included and the last not', async () => {
    const start = account.clock.wallNow();
    await enqueue({ payoutId: 'a' }, { payoutId: 'b' }, { payoutId: 'c', batch: 'May' });
    await cancel('a');
    expect(await find({ since: start + 1_000 })).toEqual(['a', 'c', 'b']);
    expect(await find({ until: start + 2_000 })).toEqual(['b']);
    expect(await find({ since: start + 1_000, until: start + 3_000 })).toEqual(['c', 'b']);
    expect(await find({ since: start + 2_000, batch: 'May' })).toEqual(['c']);
  });

  it('searches a bounded number for one page, and says how many', async () => {
    await account.ledger.enqueue(Array.from({ length: 6_000 }, (_, index) => aPayout(`p${index}`)));
    const first = await findPayouts(account.connection, { address: 'nobody' }, 10);
    expect(first).toEqual({ payouts: [], searched: 5_000, next: expect.any(String) });
    const last = await findPayouts(account.connection, { address: 'nobody' }, 10, first.next);
    expect(last).toEqual({ payouts: [], searched: 1_000, next: undefined });
  });

  it('reads neither what changed long after nor long before the time that is asked for', async () => {
    const day = 24 * 60 * 60_000;
    const start = account.clock.wallNow();
    for (let days = 0; days < 5; days += 1) {
      const payoutIds = Array.from({ length: 1_000 }, (_, index) => `p${days}-${index}`);
      await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
      await Promise.all(payoutIds.slice(0, 600).map(cancel));
      account.clock.advance(day);
    }
    const window = { state: 'cancelled', since: start + 2 * day, until: start + 2.5 * day } as const;
    const { found, searched } = await findAll(window);
    expect(found).toHaveLength(600);
    expect(found.every((payoutId) => payoutId.startsWith('p2-'))).toBe(true);
    expect(searched).toBeLessThanOrEqual(1_200);
    expect(await find({ since: start + 2 * day, until: start + 3 * day })).toHaveLength(1_000);
  });

  it('finds a payout that was put back without having been sent by the time of that', async () => {
    const start = account.clock.wallNow();
    await enqueue({ payoutId: 'first' });
    await account.ledger.enqueue(Array.from({ length: 1_500 }, (_, index) => aPayout(`p${index}`)));
    account.clock.advance(60 * 60_000);
    const { redis, connection } = account;
    await redis.hset(connection.keys.payout('first'), 'h1', `${account.clock.wallNow()}\tqueued`, 'n', 2);
    expect(await find({ since: start + 60_000 })).toEqual(['first']);
  });

  it('passes over payouts that were removed meanwhile', async () => {
    await enqueue({ payoutId: 'a' }, { payoutId: 'b' });
    await account.redis.del(account.connection.keys.payout('a'));
    expect(await find({})).toEqual(['b']);
  });
});
