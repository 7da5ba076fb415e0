import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { findPayouts, type ListOptions, listPayoutIds } from '../../src/ledger/reads/payout-queries.js';
import { readIndexPage } from '../../src/ledger/reads/payment-facts.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { countPayouts } from '../../src/ledger/reads/state-events.js';
import { ENDED_STATES } from '../../src/ledger/states.js';
import { takeLease } from './contract/ledger-rig.js';
import { findContradictions } from './scripts/find-contradictions.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** From here on the ledger is compact. */
const makeCompact = async () => takeLease(new RedisSenderLedger(account.connection, 'reply'), 'one');

async function end(payoutIds: readonly string[], state: 'completed' | 'failed' = 'completed'): Promise<void> {
  for (const payoutId of payoutIds) {
    await account.ledger.enqueue([aPayout(payoutId)]);
    await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `hash-${payoutId}` });
    await account.ledger.change({ payoutId, from: 'in_progress', to: state });
    account.clock.advance(60 * 60_000);
  }
}

const inSortedSet = async () => account.redis.zrange(account.connection.keys.state('completed'), '0', '-1');
const inStream = async () => account.redis.xlen(account.connection.keys.ended('completed'));

/** Page by page. */
async function list(options: ListOptions): Promise<string[]> {
  const found: string[] = [];
  let cursor: { readonly cursor?: string } | undefined = {};
  while (cursor !== undefined) {
    const { payoutIds, next } = await listPayoutIds(account.connection, { ...options, ...cursor });
    found.push(...payoutIds);
    cursor = next === undefined ? undefined : { cursor: next };
  }
  return found;
}

it('only states that nothing leaves have a stream', () => {
  expect(ENDED_STATES).toEqual(['completed', 'failed']);
});

describe('payouts that ended before and after the ledger became compact', () => {
  const ALL = ['a', 'b', 'c', 'd', 'e'];
  const NEWEST_FIRST = ALL.toReversed();

  beforeEach(async () => {
    await end(['a', 'b']);
    await makeCompact();
    await end(['c', 'd', 'e']);
    await end(['f'], 'failed');
  });

  it('are listed to the end also where someone has put entries of one place into the stream', async () => {
    const key = account.connection.keys.ended('completed');
    const last = (await account.redis.xrevrange(key, '+', '-', 'COUNT', 1))[0]?.[0] ?? '';
    for (const part of [1, 2]) await account.redis.xadd(key, last.replace(/-0$/, `-${part}`), 'payoutId', 'forged');
    let pages = 0;
    for (let cursor: string | undefined = ''; cursor !== undefined && pages < 20; pages += 1) {
      const page = await listPayoutIds(account.connection, {
        ...{ state: 'completed', limit: 1 },
        ...(cursor === '' ? {} : { cursor }),
      });
      cursor = page.next;
    }
    expect(pages).toBe(ALL.length + 1);
  });

  it('stand in two places', async () => {
    expect([await inSortedSet(), await inStream()]).toEqual([['a', 'b'], 3]);
    expect(await findContradictions(account)).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6])('are listed in one order, in both directions, in pages of %i', async (limit) => {
    expect(await list({ state: 'completed', limit })).toEqual(ALL);
    expect(await list({ state: 'completed', limit, newestFirst: true })).toEqual(NEWEST_FIRST);
  });

  it('are counted', async () => {
    expect(await readAccountStats(account.connection)).toMatchObject({ completed: 5, failed: 1 });
    expect((await countPayouts(account.connection)).counts).toMatchObject({ completed: 5, failed: 1, queued: 0 });
  });

  it('are read up to the moment at which they were counted', async () => {
    const read = async (after: string, upTo?: string) => {
      const range = { after, limit: 9, ...(upTo === undefined ? {} : { upTo }) };
      const { payouts } = await readIndexPage(
        account.connection,
        account.connection.keys.stateIndex('completed'),
        range,
      );
      return payouts.map(({ payoutId }) => payoutId);
    };
    const { next } = await listPayoutIds(account.connection, { state: 'completed', limit: 4 });
    expect(await read('', next)).toEqual(['a', 'b', 'c', 'd']);
    expect(await read(next ?? '')).toEqual(['e']);
    const { payoutIds, next: first } = await listPayoutIds(account.connection, { state: 'completed', limit: 1 });
    expect(payoutIds).toEqual(['a']);
    expect(await read('', first)).toEqual(['a']);
  });

  it('are found by the time at which they ended', async () => {
    const entered = new Map<string, number>();
    for (const payoutId of ALL) entered.set(payoutId, Date.parse((await account.ledger.require(payoutId)).updatedAt));
    for (const [index, payoutId] of ALL.entries()) {
      const time = entered.get(payoutId) ?? NaN;
      const find = async (filter: object) => {
        const { payouts } = await findPayouts(account.connection, { state: 'completed', ...filter }, 9);
        return payouts.map((payout) => payout.payoutId);
      };
      expect(await find({ since: time })).toEqual(ALL.slice(index).toReversed());
      expect(await find({ until: time })).toEqual(ALL.slice(0, index).toReversed());
    }
    const everywhere = await findPayouts(account.connection, {}, 3);
    expect(everywhere.payouts.map(({ payoutId }) => payoutId)).toEqual(['f', 'e', 'd']);
  });

  it('are removed, the oldest first, and leave nothing behind', async () => {
    const remove = async (limit: number) =>
      removePayouts(account.connection, 'completed', Number.MAX_SAFE_INTEGER, limit);
    expect(await remove(3)).toHaveLength(3);
    expect(await list({ state: 'completed' })).toEqual(['d', 'e']);
    expect(await remove(9)).toHaveLength(2);
    expect([await inSortedSet(), await inStream()]).toEqual([[], 0]);
    expect(await readAccountStats(account.connection)).toMatchObject({ completed: 0, failed: 1 });
    expect(await findContradictions(account)).toEqual([]);
  });

  it('leave the index also where a removal ended right before it', async () => {
    await account.redis.unlink(account.connection.keys.payout('a'), account.connection.keys.payout('c'));
    await removePayouts(account.connection, 'completed', 0, 9);
    expect(await list({ state: 'completed' })).toEqual(['b', 'd', 'e']);
  });
});

it('a change that was interrupted is completed as the ledger is, also by who leaves it without a mark', async () => {
  const { keys } = account.connection;
  const record = { state: 'completed', pending: 'in_progress', attempt: 1, tokens: 't', n: 1, h0: '1\tcompleted' };
  await account.redis.hset(keys.payout('p'), record);
  await account.sender.findForgottenSends([{ payoutId: 'p', attempt: 1, token: 't' }]);
  expect([await inSortedSet(), await inStream()]).toEqual([['p'], 0]);
  expect(await account.redis.hexists(keys.ledger, 'format')).toBe(0);
});

it('a payout that ended shows that the account is not new', async () => {
  await makeCompact();
  await end(['a']);
  const { keys, run } = account.connection;
  await account.redis.unlink(keys.sender, keys.journals);
  expect(await run('declare-new', [1, 'ann', 'no sender exists'])).toEqual([-22, 'a payout is completed']);
});

it('a counter that was lost continues where the stream ends', async () => {
  await makeCompact();
  await end(['a', 'b']);
  await account.redis.hdel(account.connection.keys.ledger, 'seq');
  await end(['c', 'd']);
  expect(await list({ state: 'completed' })).toEqual(['a', 'b', 'c', 'd']);
  const seq = Number(await account.redis.hget(account.connection.keys.ledger, 'seq'));
  const { next } = await listPayoutIds(account.connection, { state: 'completed', limit: 4 });
  expect(Number(next)).toBe(seq);
});
