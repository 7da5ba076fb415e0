import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, UnsupportedFormatError } from '../../src/base/errors.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { listPayoutIds, findPayouts, type ListOptions } from '../../src/ledger/reads/payout-queries.js';
import { peekSenderView } from '../../src/ledger/sender-view.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { SCRIPT_NAMES, scriptSource } from '../../src/ledger/ledger-connection.js';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';
import {
  account,
  ANN,
  beginOne,
  change,
  clock,
  connection,
  enqueue,
  enter,
  finish,
  HOLD,
  JOURNAL,
  keys,
  ledger,
  nextBegin,
  redis,
  sender,
  stateOf,
  takeLease,
  unchanged,
  useAccount,
} from './support/use-account.js';
import { parseHistoryEntry } from '../../src/ledger/payout-record.js';
import { countPayouts } from '../../src/ledger/reads/state-events.js';
import { findContradictions } from './scripts/find-contradictions.js';

useAccount();

/** A hash (texts), a sorted set (scores), or the entries of a stream, as `id|field|value|…`. */
type Content = Readonly<Record<string, string | number>> | string[];

async function writeFormat1() {
  const ledger = JSON.parse(await readFile('test/ledger/fixtures/format-1.json', 'utf8')) as Record<string, Content>;
  for (const [name, content] of Object.entries(ledger)) {
    const key = `${keys.prefix}:${name}`;
    for (const [member, value] of Object.entries(content)) {
      if (typeof value === 'number') await redis.zadd(key, value, member);
      else if (!Array.isArray(content)) await redis.hset(key, member, value);
      else {
        const [id = '', ...fields] = value.split('|');
        await redis.xadd(key, id, ...fields);
      }
    }
  }
}

const REASON = 'This Redis holds an older copy of the ledger: it knows 6 sends, the journal 7.';
const SENDING: SendAttempt = { payoutId: 'P-4', attempt: 1, token: 'e:2' };
const ACCEPTED = { kind: 'accepted', txhash: 'hash-new' } as const;

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
const formatOf = async () => redis.hget(keys.ledger, 'format');
const makeCompact = async () => takeLease(sender, 'one');
/** P-3 is unknown in the fixture. */
const follow = async (txhash: string) => change('P-3', 'unknown', 'in_progress', { txhash, by: 'ann' });

describe('a ledger of format 1', () => {
  beforeEach(writeFormat1);

  it('is read whole', async () => {
    expect(await readAccountStats(connection)).toMatchObject({
      ...{ queued: 1, sending: 1, in_progress: 1, rejected: 1, unknown: 1, completed: 1, sends: 6 },
      ...{ pausedBy: 'send journal', objections: [], sender: { owner: 'old', epoch: 2 } },
    });
    expect(await ledger.get('P-1')).toMatchObject({
      ...{ state: 'in_progress', txhash: 'hash-1', attempt: 1, reference: 'invoice 1', metadata: { customer: 1 } },
      history: [{ to: 'queued' }, { to: 'sending' }, { to: 'in_progress' }],
    });
    expect(await ledger.findByTxhash('hash-1')).toBe('P-1');
    const { payoutIds } = await listPayoutIds(connection, { batch: 'May', limit: 9 });
    expect(payoutIds).toEqual(['P-1', 'P-2']);
    expect(await formatOf()).toBeNull();
  });

  it('stays as it is where someone only looks', async () => {
    const before = await account.dump();
    const told = { sendCount: 6, last: '', pausedReason: REASON, objections: [], awaitingAnswer: true };
    expect(await peekSenderView(connection)).toMatchObject(told);
    const sends = [SENDING, { ...SENDING, token: 'e:1' }, { ...SENDING, attempt: 2 }];
    expect(await sender.findForgottenSends(sends)).toEqual(sends.slice(1).map((send) => ({ send, state: 'sending' })));
    expect(await account.dump()).toEqual(before);
  });

  it('is marked by the first script, which makes the pause of a journal an objection', async () => {
    const view = await sender.readSender();
    expect(await formatOf()).toBe('2');
    // For workers of format 1, until the adoption.
    expect(view.pausedReason).toBe(REASON);
    expect(view.objections).toEqual([
      { journalId: 'unnamed', kind: 'ledger', reason: REASON, host: '', dir: '', sends: 0, at: 1_893_456_011_000 },
    ]);
    await expect(ledger.resume('ann', 'continue')).rejects.toThrow(ConflictError);
    const asked = await nextBegin(sender, await makeCompact(), 'P-6');
    expect(await sender.beginSend(asked)).toMatchObject({ kind: 'objected' });
  });

  it('takes the outcome of the attempt under way, known by its epoch, and of no other', async () => {
    expect(await sender.readSending()).toEqual([SENDING]);
    for (const other of [{ token: 'e:1' }, { token: 'a-token' }, { attempt: 2 }]) {
      expect(await finish({ ...SENDING, ...other }, ACCEPTED)).toEqual({ recorded: false });
    }
    expect(await finish(SENDING, ACCEPTED)).toEqual({ recorded: true });
    expect(await ledger.get('P-4')).toMatchObject({ state: 'in_progress', txhash: 'hash-new' });
  });

  it('takes a late outcome of its last attempt, and that of an earlier one as a late payment', async () => {
    const second = { payoutId: 'P-3', attempt: 2, token: 'e:2' };
    const first = { payoutId: 'P-3', attempt: 1, token: 'e:1' };
    expect(await sender.findForgottenSends([first, { ...first, token: 'a-token' }, second])).toHaveLength(1);
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    expect(await finish(second, { kind: 'accepted', txhash: 'hash-3' })).toEqual({ recorded: true });
    expect(await ledger.get('P-3')).toMatchObject({
      ...{ state: 'in_progress', txhash: 'hash-3', lateTxhash: 'hash-new' },
    });
  });
});

/** What a version that reads up to this format gets. */
async function pauseAsFormat(format: number): Promise<unknown> {
  const source = scriptSource('pause-account').replace(/local FORMAT = \d/, `local FORMAT = ${format}`);
  const { ofEveryScript } = keys;
  return redis.eval(source, ofEveryScript.length, ...ofEveryScript, 1, 'ann', 'lunch');
}

it('a ledger is of format 3 from its first held payout on, which the version before does not read', async () => {
  await enqueue('p');
  await enter('cancelled', 'q');
  expect(await sender.holdPayout('q', 0, HOLD)).toBe(false);
  expect(await formatOf()).toBe('2');
  expect(await sender.holdPayout('p', 0, HOLD)).toBe(true);
  expect([await formatOf(), await pauseAsFormat(2)]).toEqual(['3', [-10, 3]]);
  await change('p', 'held', 'cancelled', ANN);
  expect(await formatOf()).toBe('3');
  expect(await readAccountStats(connection)).toMatchObject({ cancelled: 2, held: 0 });
});

describe('a compact ledger', () => {
  beforeEach(writeFormat1);

  const fieldsOf = async () => redis.hkeys(keys.txhashBuckets('hash-new')[0] ?? '');
  const complete = async () => change('P-4', 'in_progress', 'completed');
  const remove = async () => removePayouts(connection, 'completed', Number.MAX_SAFE_INTEGER, 100);

  it('is one from the first lease of this version on; then the version before is refused', async () => {
    await enter('cancelled', 'p');
    const older = { ...(await sender.readSender()), sendCount: 5 };
    expect(await sender.acquireLease('new', older, JOURNAL, 0)).toBeUndefined();
    expect([await formatOf(), await pauseAsFormat(3)]).toEqual(['2', 2]);
    await makeCompact();
    expect([await formatOf(), await pauseAsFormat(3)]).toEqual(['4', [-10, 4]]);
  });

  it.each<[string, (text: string) => string]>([
    ['whole', (text) => text.toUpperCase()],
    ['by a part of its digest', (text) => `0x${text.toUpperCase()}`],
  ])('finds a transaction that the version before indexed %s, in any spelling', async (how, spell) => {
    await makeCompact();
    const txhash = spell('ab'.repeat(32));
    await finish(SENDING, { kind: 'accepted', txhash });
    const bucket = `${keys.prefix}:txhash:${sha1(txhash).slice(0, 3)}`;
    await redis.del(...keys.txhashBuckets(txhash));
    await redis.hset(bucket, how === 'whole' ? txhash : ` ${sha1(txhash).slice(3, 23)}`, 'P-4');
    for (const given of [txhash, 'ab'.repeat(32), `0x${'AB'.repeat(32)}`]) {
      expect(await ledger.findByTxhash(given)).toBe('P-4');
      await expect(follow(given)).rejects.toThrow('already belongs to payout P-4');
    }
    await complete();
    expect((await remove()).map(({ payoutId }) => payoutId)).toContain('P-4');
    expect(await redis.exists(bucket, ...keys.txhashBuckets(txhash))).toBe(0);
  });

  it.each([
    ['by a part of its digest', true],
    ['whole', false],
  ])(
    'gives a txhash that stands there %s to no second payout, and forgets it with its payout',
    async (_, isCompact) => {
      if (isCompact) await makeCompact();
      await finish(SENDING, ACCEPTED);
      expect(await fieldsOf()).toEqual([isCompact ? expect.stringMatching(/^ [0-9a-f]{20}$/) : 'hash-new']);
      await makeCompact();
      await expect(follow('hash-new')).rejects.toThrow(ConflictError);
      await complete();
      await finish({ payoutId: 'P-3', attempt: 2, token: 'e:2' }, ACCEPTED);
      expect(await ledger.get('P-3')).toMatchObject({
        state: 'unknown',
        message: expect.stringContaining('P-4'),
      });
      expect(await ledger.findByTxhash('hash-new')).toBe('P-4');
      await remove();
      expect([await stateOf('P-4'), await fieldsOf()]).toEqual([undefined, []]);
    },
  );
});

it('a ledger of a newer format is refused to every script and reader, and left as it is', async () => {
  await redis.hset(keys.ledger, 'format', '5');
  const uses = [
    ...SCRIPT_NAMES.map((name) => async () => connection.run(name, [])),
    async () => readAccountStats(connection),
    async () => peekSenderView(connection),
  ];
  await unchanged(async () => {
    for (const use of uses) {
      const error = await use().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UnsupportedFormatError);
      expect(String(error)).toMatch(
        /has format 5; this version of payout-queue reads formats 1 to 4\. Run the version/,
      );
    }
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

  it('has names of states before the ledger is compact, and then their codes', async () => {
    await enqueue('p');
    const first = `${now()}\tqueued`;
    expect(await entries('p')).toEqual([first]);
    clock.advance(1_234);
    await makeCompact();
    await enqueue('q');
    await cancel();
    expect(await entries('p')).toEqual([first, `x${now().toString(36)}\tann\tlooked it up`]);
    expect(await entries('q')).toEqual([`q${now().toString(36)}`]);
    const at = new Date(now()).toISOString();
    expect(await historyOf('p')).toMatchObject([{ to: 'queued' }, { at, from: 'queued', to: 'cancelled', ...ANN }]);
    expect(await historyOf('q')).toEqual([{ at, to: 'queued' }]);
  });

  const AT = 1_893_456_000_000;
  const CODED = Number.parseInt('o5u50000', 36);
  it.each([
    ['1893456000000\tcancelled\tann\twhy', [AT, 'cancelled', 'ann', 'why']],
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
    const accepted = { ...ACCEPTED, txhash: 'h' };
    await finish(attempt, accepted);
    const record = keys.payout('p');
    expect(await redis.hget(record, 'told')).toBe(`${attempt.token}p${sha1('h').slice(0, 6)}`);
    await redis.hset(record, 'told', toldBy(attempt.token));
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

/** In the sorted set of before, and in the stream. */
const places = async () => [
  await redis.zrange(keys.state('completed'), '0', '-1'),
  await redis.xlen(keys.ended('completed')),
];

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
    expect(await readAccountStats(connection)).toMatchObject({ completed: 5, failed: 1 });
    expect((await countPayouts(connection)).counts).toMatchObject({ completed: 5, failed: 1, queued: 0 });
    for (const limit of [1, 2, 3, 5, 6]) {
      expect(await list({ ...COMPLETED, limit })).toEqual(ALL);
      expect(await list({ ...COMPLETED, limit, newestFirst: true })).toEqual(ALL.toReversed());
    }
  });

  it('are found by the time at which they ended', async () => {
    const find = async (filter: object, limit = 9) =>
      (await findPayouts(connection, filter, limit)).payouts.map(({ payoutId }) => payoutId);
    for (const [index, payoutId] of ALL.entries()) {
      const time = Date.parse((await ledger.require(payoutId)).updatedAt);
      expect(await find({ ...COMPLETED, since: time })).toEqual(ALL.slice(index).toReversed());
      expect(await find({ ...COMPLETED, until: time })).toEqual(ALL.slice(0, index).toReversed());
    }
    expect(await find({}, 3)).toEqual(['f', 'e', 'd']);
  });

  it('are removed, the oldest first, and leave nothing behind', async () => {
    const remove = async (limit: number) => removePayouts(connection, 'completed', Number.MAX_SAFE_INTEGER, limit);
    expect(await remove(3)).toHaveLength(3);
    expect(await list()).toEqual(['d', 'e']);
    expect(await remove(9)).toHaveLength(2);
    expect(await places()).toEqual([[], 0]);
    expect(await readAccountStats(connection)).toMatchObject({ completed: 0, failed: 1 });
    expect(await findContradictions(account)).toEqual([]);
  });
});

it('a change that was interrupted is completed also by who leaves the ledger without a mark', async () => {
  const record = { state: 'completed', pending: 'in_progress', attempt: 1, tokens: 't', n: 1, h0: '1\tcompleted' };
  await redis.hset(keys.payout('p'), record);
  await sender.findForgottenSends([{ payoutId: 'p', attempt: 1, token: 't' }]);
  expect(await places()).toEqual([['p'], 0]);
  expect(await redis.hexists(keys.ledger, 'format')).toBe(0);
});

it('a counter that was lost continues where the stream ends', async () => {
  await makeCompact();
  await end('completed', 'a', 'b');
  await redis.hdel(keys.ledger, 'seq');
  await end('completed', 'c', 'd');
  expect(await list()).toEqual(['a', 'b', 'c', 'd']);
  const { next } = await listPayoutIds(connection, { ...COMPLETED, limit: 4 });
  expect(await redis.hget(keys.ledger, 'seq')).toBe(next);
});
