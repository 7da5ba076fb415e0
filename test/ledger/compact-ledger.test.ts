import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { findPayouts, type ListOptions, listPayoutIds } from '../../src/ledger/reads/payout-queries.js';
import { parseHistoryEntry } from '../../src/ledger/payout-record.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { countPayouts } from '../../src/ledger/reads/state-events.js';
import { takeLease } from './contract/ledger-rig.js';
import { findContradictions } from './scripts/find-contradictions.js';
import {
  account,
  beginOne,
  change,
  enqueue,
  enter,
  finish,
  stateOf,
  unchanged,
  useAccount,
} from './support/use-account.js';

/** What an account keeps in fewer bytes: its history, and the index of what has ended. */

useAccount();

const ANN = { by: 'ann', reason: 'too late' };
const now = () => account.clock.wallNow();
const makeCompact = async () => takeLease(account.sender, 'one');
const cancel = async () => change('p', 'queued', 'cancelled', ANN);

describe('a history', () => {
  const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
  const entries = async (payoutId: string) => {
    const { n, ...record } = await account.redis.hgetall(account.connection.keys.payout(payoutId));
    return Array.from({ length: Number(n) }, (_, index) => record[`h${index}`]);
  };
  const historyOf = async (payoutId: string) => (await account.ledger.require(payoutId)).history;

  it('has names of states before the ledger is compact, and then their codes', async () => {
    await enqueue('p');
    const first = `${now()}\tqueued`;
    expect(await entries('p')).toEqual([first]);
    account.clock.advance(1_234);
    await makeCompact();
    await enqueue('q');
    await cancel();
    expect(await entries('p')).toEqual([first, `x${now().toString(36)}\tann\ttoo late`]);
    expect(await entries('q')).toEqual([`q${now().toString(36)}`]);
    const at = new Date(now()).toISOString();
    expect(await historyOf('p')).toMatchObject([{ to: 'queued' }, { at, from: 'queued', to: 'cancelled', ...ANN }]);
    expect(await historyOf('q')).toEqual([{ at, to: 'queued' }]);
  });

  const AT = 1_893_456_000_000;
  const CODED = Number.parseInt('o5u50000', 36);
  it.each([
    ['1893456000000\tqueued', [AT, 'queued', '', '']],
    ['1893456000000\tcancelled\tann\twhy', [AT, 'cancelled', 'ann', 'why']],
    ['qo5u50000', [CODED, 'queued', '', '']],
    ['xo5u50000\t\twhy', [CODED, 'cancelled', '', 'why']],
    ['zo5u50000', [NaN, '', '', '']],
    ['yesterday\tqueued', [NaN, 'queued', '', '']],
  ])('is read: %j', (text, [at, to, by, reason]) => {
    expect(parseHistoryEntry(text)).toEqual({ at, to, by, reason });
  });

  it.each([true, false])('knows a decision that is repeated, compact: %s', async (isCompact) => {
    if (isCompact) await makeCompact();
    await enqueue('p');
    await cancel();
    await makeCompact();
    await unchanged(cancel);
  });

  it.each([
    ['this format', (token: string) => `${token}p${sha1('h').slice(0, 6)}`, 'queued'],
    ['an earlier format', (token: string) => `${token} in_progress ${sha1('h').slice(0, 8)}`, 'queued'],
    // It proves wrong who stated that it was not sent.
    ['another outcome', (token: string) => `${token}p${sha1('i').slice(0, 6)}`, 'in_progress'],
  ])('that an operator decided since has an outcome told again, of %s: %s', async (_name, toldBy, expected) => {
    await enqueue('p');
    const attempt = await beginOne('p');
    const accepted = { kind: 'accepted', txhash: 'h' } as const;
    await finish(attempt, accepted);
    const record = account.connection.keys.payout('p');
    expect(await account.redis.hget(record, 'told')).toBe(`${attempt.token}p${sha1('h').slice(0, 6)}`);
    await account.redis.hset(record, 'told', toldBy(attempt.token));
    await change('p', 'in_progress', 'unknown');
    await change('p', 'unknown', 'queued', ANN);
    await finish(attempt, accepted);
    expect(await stateOf('p')).toBe(expected);
  });
});

async function end(state: 'completed' | 'failed', ...payoutIds: string[]): Promise<void> {
  for (const payoutId of payoutIds) {
    await enter(state, payoutId);
    account.clock.advance(60 * 60_000);
  }
}

/** In the sorted set of before, and in the stream. */
const places = async () => [
  await account.redis.zrange(account.connection.keys.state('completed'), '0', '-1'),
  await account.redis.xlen(account.connection.keys.ended('completed')),
];

const COMPLETED = { state: 'completed' } as const;

/** Page by page. @returns the pages */
async function listPages(options: ListOptions): Promise<(readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  let cursor: { readonly cursor?: string } | undefined = {};
  while (cursor !== undefined && pages.length < 20) {
    const { payoutIds, next } = await listPayoutIds(account.connection, { ...options, ...cursor });
    pages.push(payoutIds);
    cursor = next === undefined ? undefined : { cursor: next };
  }
  return pages;
}
const list = async (options: ListOptions = COMPLETED) => (await listPages(options)).flat();

describe('payouts that ended before and after the ledger became compact', () => {
  const ALL = ['a', 'b', 'c', 'd', 'e'];

  beforeEach(async () => {
    await end('completed', 'a', 'b');
    await makeCompact();
    await end('completed', 'c', 'd', 'e');
    await end('failed', 'f');
  });

  it('are counted, and listed in one order, in both directions, in pages of any size', async () => {
    expect(await places()).toEqual([['a', 'b'], 3]);
    expect(await findContradictions(account)).toEqual([]);
    expect(await readAccountStats(account.connection)).toMatchObject({ completed: 5, failed: 1 });
    expect((await countPayouts(account.connection)).counts).toMatchObject({ completed: 5, failed: 1, queued: 0 });
    for (const limit of [1, 2, 3, 5, 6]) {
      expect(await list({ ...COMPLETED, limit })).toEqual(ALL);
      expect(await list({ ...COMPLETED, limit, newestFirst: true })).toEqual(ALL.toReversed());
    }
  });

  it('are found by the time at which they ended', async () => {
    const find = async (filter: object, limit = 9) =>
      (await findPayouts(account.connection, filter, limit)).payouts.map(({ payoutId }) => payoutId);
    for (const [index, payoutId] of ALL.entries()) {
      const time = Date.parse((await account.ledger.require(payoutId)).updatedAt);
      expect(await find({ ...COMPLETED, since: time })).toEqual(ALL.slice(index).toReversed());
      expect(await find({ ...COMPLETED, until: time })).toEqual(ALL.slice(0, index).toReversed());
    }
    expect(await find({}, 3)).toEqual(['f', 'e', 'd']);
  });

  it('are removed, the oldest first, and leave nothing behind', async () => {
    const remove = async (limit: number) =>
      removePayouts(account.connection, 'completed', Number.MAX_SAFE_INTEGER, limit);
    expect(await remove(3)).toHaveLength(3);
    expect(await list()).toEqual(['d', 'e']);
    expect(await remove(9)).toHaveLength(2);
    expect(await places()).toEqual([[], 0]);
    expect(await readAccountStats(account.connection)).toMatchObject({ completed: 0, failed: 1 });
    expect(await findContradictions(account)).toEqual([]);
  });
});

it('a change that was interrupted is completed as the ledger is, also by who leaves it without a mark', async () => {
  const { keys } = account.connection;
  const record = { state: 'completed', pending: 'in_progress', attempt: 1, tokens: 't', n: 1, h0: '1\tcompleted' };
  await account.redis.hset(keys.payout('p'), record);
  await account.sender.findForgottenSends([{ payoutId: 'p', attempt: 1, token: 't' }]);
  expect(await places()).toEqual([['p'], 0]);
  expect(await account.redis.hexists(keys.ledger, 'format')).toBe(0);
});

it('a counter that was lost continues where the stream ends', async () => {
  await makeCompact();
  await end('completed', 'a', 'b');
  await account.redis.hdel(account.connection.keys.ledger, 'seq');
  await end('completed', 'c', 'd');
  expect(await list()).toEqual(['a', 'b', 'c', 'd']);
  const { next } = await listPayoutIds(account.connection, { ...COMPLETED, limit: 4 });
  expect(await account.redis.hget(account.connection.keys.ledger, 'seq')).toBe(next);
});
