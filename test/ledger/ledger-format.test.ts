import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import { STORED_FORMAT } from '../../src/base/stored-format.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { listPayoutIds, findPayouts, type ListOptions } from '../../src/ledger/payout-queries.js';
import { peekSenderView } from '../../src/ledger/sender-view.js';
import { SCRIPT_NAMES } from '../../src/ledger/ledger-scripts.js';
import {
  account,
  ANN,
  begun,
  beginOne,
  change,
  clock,
  connection,
  enqueue,
  enter,
  finish,
  keys,
  ledger,
  redis,
  sender,
  stateOf,
  unchanged,
  useAccount,
} from './support/use-account.js';
import { parseHistoryEntry } from '../../src/ledger/payout-record.js';
import { countPayouts } from '../../src/ledger/reads/state-events.js';
import { findContradictions } from './scripts/find-contradictions.js';
import { removePayouts } from './support/remove-payouts.js';

useAccount();

const ACCEPTED = { kind: 'accepted', gatewayId: 'hash-new' } as const;

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
const formatOf = async () => redis.hget(keys.ledger, 'format');

it('the first script that writes gives a ledger its format, and one that someone only looks with does not', async () => {
  await sender.findForgottenSends([{ payoutId: 'p', attempt: 1, token: 't' }]);
  await peekSenderView(connection);
  expect(await formatOf()).toBeNull();
  await enqueue('p');
  expect(await formatOf()).toBe(String(STORED_FORMAT));
});

it.each(['2', 'x', ''])(
  'a ledger of format "%s" is refused to every script and reader, and left as it is',
  async (format) => {
    await redis.hset(keys.ledger, 'format', format);
    const uses = [
      ...SCRIPT_NAMES.map((name) => async () => connection.run(name, {} as never)),
      async () => readAccountStats(connection),
      async () => peekSenderView(connection),
    ];
    await unchanged(async () => {
      for (const use of uses) {
        await expect(use()).rejects.toThrow(
          new UnsupportedFormatError(
            `The ledger in Redis has format ${format}; this version of payout-queue reads format 1. Run the version that wrote it.`,
          ),
        );
      }
    });
  },
);

describe('the index of transactions', () => {
  const remove = async () => removePayouts(connection, 'completed', Number.MAX_SAFE_INTEGER, 100);

  it('finds a transaction in any spelling, and forgets it with its payout', async () => {
    const gatewayId = `0x${'AB'.repeat(32)}`;
    await finish(await begun('p'), { kind: 'accepted', gatewayId: gatewayId });
    await finish(await begun('q'), { kind: 'unknown', reason: 'lost' });
    const bucket = keys.gatewayIdBucket(gatewayId);
    expect(await redis.hgetall(bucket)).toEqual({ [sha1('ab'.repeat(32)).slice(3, 23)]: 'p' });
    for (const given of [gatewayId, 'ab'.repeat(32), `0x${'ab'.repeat(32)}`]) {
      expect(await ledger.findByGatewayId(given)).toBe('p');
      const claim = change('q', 'unknown', 'in_progress', { gatewayId: given, by: 'ann' });
      await expect(claim).rejects.toThrow('already belongs to payout p');
    }
    await change('p', 'in_progress', 'completed');
    expect(await remove()).toMatchObject([{ payoutId: 'p' }]);
    expect([await redis.exists(bucket), await ledger.findByGatewayId(gatewayId)]).toEqual([0, undefined]);
  });

  it('gives a gatewayId to no second payout', async () => {
    await finish(await begun('p'), ACCEPTED);
    await finish(await begun('q'), ACCEPTED);
    expect(await ledger.get('q')).toMatchObject({ state: 'unknown', message: expect.stringContaining('payout p') });
    expect(await ledger.findByGatewayId('hash-new')).toBe('p');
  });
});

const now = () => clock.wallNow();
const cancel = async () => change('p', 'queued', 'cancelled', ANN);

describe('a history', () => {
  const entries = async (payoutId: string) => {
    const { n, ...record } = await redis.hgetall(keys.payout(payoutId));
    return Array.from({ length: Number(n) }, (_, index) => record[`h${index}`]);
  };
  const historyOf = async (payoutId: string) => (await ledger.require(payoutId)).history;

  it('has codes of states, and times in base 36', async () => {
    await enqueue('p');
    const first = `q${now().toString(36)}`;
    expect(await entries('p')).toEqual([first]);
    clock.advance(1_234);
    await cancel();
    expect(await entries('p')).toEqual([first, `x${now().toString(36)}\tann\tlooked it up`]);
    const at = new Date(now()).toISOString();
    expect(await historyOf('p')).toMatchObject([{ to: 'queued' }, { at, from: 'queued', to: 'cancelled', ...ANN }]);
  });

  const CODED = Number.parseInt('o5u50000', 36);
  it.each([
    ['xo5u50000\t\twhy', [CODED, 'cancelled', '', 'why']],
    ['zo5u50000', [expect.any(Number), '', '', '']],
    ['yesterday\tqueued', [expect.any(Number), '', 'queued', '']],
  ])('is read: %j', (text, [at, to, by, reason]) => {
    expect(parseHistoryEntry(text)).toEqual({ at, to, by, reason });
  });

  it('knows a decision that is repeated', async () => {
    await enqueue('p');
    await cancel();
    await unchanged(cancel);
  });

  it.each([
    ['the same', (token: string) => `${token}p${sha1('h').slice(0, 6)}`, 'queued'],
    // It proves wrong who stated that it was not sent.
    ['another outcome', (token: string) => `${token}p${sha1('i').slice(0, 6)}`, 'in_progress'],
  ])('that an operator decided since has an outcome told again, %s: %s', async (_name, toldBy, expected) => {
    await enqueue('p');
    const attempt = await beginOne('p');
    const accepted = { ...ACCEPTED, gatewayId: 'h' };
    await finish(attempt, accepted);
    const record = keys.payout('p');
    expect(await redis.hget(record, 'answer')).toBe(`${attempt.token}p${sha1('h').slice(0, 6)}`);
    await redis.hset(record, 'answer', toldBy(attempt.token));
    await change('p', 'in_progress', 'unknown');
    await change('p', 'unknown', 'queued', ANN);
    await finish(attempt, accepted);
    expect(await stateOf('p')).toBe(expected);
  });
});

async function end(state: 'completed' | 'failed', ...payoutIds: string[]) {
  for (const payoutId of payoutIds) {
    await enter(state, payoutId);
    clock.advance(60 * 60_000);
  }
}

const COMPLETED = { state: 'completed' } as const;

async function listPages(options: ListOptions): Promise<(readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  let cursor: { readonly cursor?: string } | undefined = {};
  while (cursor !== undefined && pages.length < 20) {
    const { payoutIds, next } = await listPayoutIds(connection, { ...options, ...cursor });
    pages.push(payoutIds);
    cursor = next === undefined ? undefined : { cursor: next };
  }
  return pages;
}
const list = async (options: ListOptions = COMPLETED) => (await listPages(options)).flat();

describe('the index of a state that is never left', () => {
  const ALL = ['a', 'b', 'c', 'd', 'e'];

  beforeEach(async () => {
    await end('completed', ...ALL);
    await end('failed', 'f');
  });

  it('is counted, and listed in both directions, in pages of any size', async () => {
    expect(await redis.xlen(keys.state('completed'))).toBe(5);
    expect(await findContradictions(account)).toEqual([]);
    expect(await readAccountStats(connection)).toMatchObject({ completed: 5, failed: 1 });
    expect((await countPayouts(connection)).counts).toMatchObject({ completed: 5, failed: 1, queued: 0 });
    for (const limit of [1, 2, 3, 5, 6]) {
      expect(await list({ ...COMPLETED, limit })).toEqual(ALL);
      expect(await list({ ...COMPLETED, limit, newestFirst: true })).toEqual(ALL.toReversed());
    }
  });

  it('is searched by the time at which a payout ended', async () => {
    const find = async (filter: object, limit = 9) =>
      (await findPayouts(connection, filter, limit)).payouts.map(({ payoutId }) => payoutId);
    for (const [index, payoutId] of ALL.entries()) {
      const time = Date.parse((await ledger.require(payoutId)).updatedAt);
      expect(await find({ ...COMPLETED, since: time })).toEqual(ALL.slice(index).toReversed());
      expect(await find({ ...COMPLETED, until: time })).toEqual(ALL.slice(0, index).toReversed());
    }
    expect(await find({}, 3)).toEqual(['f', 'e', 'd']);
  });

  it('loses removed payouts, the oldest first', async () => {
    const remove = async (limit: number) => removePayouts(connection, 'completed', Number.MAX_SAFE_INTEGER, limit);
    expect(await remove(3)).toHaveLength(3);
    expect(await list()).toEqual(['d', 'e']);
    expect(await remove(9)).toHaveLength(2);
    expect(await redis.xlen(keys.state('completed'))).toBe(0);
    expect(await readAccountStats(connection)).toMatchObject({ completed: 0, failed: 1 });
    expect(await findContradictions(account)).toEqual([]);
  });
});

it('a change that was interrupted is completed also by who leaves the ledger without a mark', async () => {
  const record = { state: 'completed', pending: 'in_progress', attempt: 1, tokens: 't', n: 1, h0: 'c1' };
  await redis.hset(keys.payout('p'), record);
  await sender.findForgottenSends([{ payoutId: 'p', attempt: 1, token: 't' }]);
  expect(await redis.xlen(keys.state('completed'))).toBe(1);
  expect(await redis.hexists(keys.ledger, 'format')).toBe(0);
});

it('a counter that was lost continues where the stream ends', async () => {
  await end('completed', 'a', 'b');
  await redis.hdel(keys.ledger, 'seq');
  await end('completed', 'c', 'd');
  expect(await list()).toEqual(['a', 'b', 'c', 'd']);
  const { next } = await listPayoutIds(connection, { ...COMPLETED, limit: 4 });
  expect(await redis.hget(keys.ledger, 'seq')).toBe(next);
});
