import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, UnsupportedFormatError } from '../../src/base/errors.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { listPayoutIds } from '../../src/ledger/reads/payout-queries.js';
import { peekSenderView } from '../../src/ledger/sender-view.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { SCRIPT_NAMES, scriptSource } from '../../src/ledger/ledger-connection.js';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';
import { HOLD, JOURNAL, nextBegin, takeLease } from './contract/ledger-rig.js';
import { account, ANN, change, enqueue, enter, finish, stateOf, unchanged, useAccount } from './support/use-account.js';

useAccount();
beforeEach(async () => {
  const ledger = JSON.parse(await readFile('test/ledger/fixtures/format-1.json', 'utf8')) as Record<string, Content>;
  for (const [name, content] of Object.entries(ledger)) {
    const key = `${account.connection.keys.prefix}:${name}`;
    for (const [member, value] of Object.entries(content)) {
      if (typeof value === 'number') await account.redis.zadd(key, value, member);
      else if (!Array.isArray(content)) await account.redis.hset(key, member, value);
      else {
        const [id = '', ...fields] = value.split('|');
        await account.redis.xadd(key, id, ...fields);
      }
    }
  }
});

/** A hash (texts), a sorted set (scores), or the entries of a stream, as `id|field|value|…`. */
type Content = Readonly<Record<string, string | number>> | string[];

const REASON = 'This Redis holds an older copy of the ledger: it knows 6 sends, the journal 7.';
/** Under way in the fixture. */
const SENDING: SendAttempt = { payoutId: 'P-4', attempt: 1, token: 'e:2' };
const ACCEPTED = { kind: 'accepted', txhash: 'hash-new' } as const;

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const formatOf = async () => account.redis.hget(account.connection.keys.ledger, 'format');
const makeCompact = async () => takeLease(account.sender, 'new');
/** P-3 is unknown in the fixture. */
const follow = async (txhash: string) => change('P-3', 'unknown', 'in_progress', { txhash, by: 'ann' });

describe('a ledger of format 1', () => {
  it('is read whole', async () => {
    expect(await readAccountStats(account.connection)).toMatchObject({
      ...{ queued: 1, sending: 1, in_progress: 1, rejected: 1, unknown: 1, completed: 1, sends: 6 },
      ...{ pausedBy: 'send journal', objections: [], sender: { owner: 'old', epoch: 2 } },
    });
    expect(await account.ledger.get('P-1')).toMatchObject({
      ...{ state: 'in_progress', txhash: 'hash-1', attempt: 1, reference: 'invoice 1', metadata: { customer: 1 } },
      history: [{ to: 'queued' }, { to: 'sending' }, { to: 'in_progress' }],
    });
    expect(await account.ledger.findByTxhash('hash-1')).toBe('P-1');
    const { payoutIds } = await listPayoutIds(account.connection, { batch: 'May', limit: 9 });
    expect(payoutIds).toEqual(['P-1', 'P-2']);
    expect(await formatOf()).toBeNull();
  });

  it('stays as it is where someone only looks', async () => {
    const before = await account.dump();
    expect(await peekSenderView(account.connection)).toMatchObject({
      sendCount: 6,
      last: '',
      pausedReason: REASON,
      objections: [],
      awaitingAnswer: true,
    });
    const sends = [SENDING, { ...SENDING, token: 'e:1' }, { ...SENDING, attempt: 2 }];
    expect(await account.sender.findForgottenSends(sends)).toEqual(
      sends.slice(1).map((send) => ({ send, state: 'sending' })),
    );
    expect(await account.dump()).toEqual(before);
  });

  it('is marked by the first script, which makes an objection of the pause that a journal made', async () => {
    const view = await account.sender.readSender();
    expect(await formatOf()).toBe('2');
    // For workers of format 1, until the adoption.
    expect(view.pausedReason).toBe(REASON);
    expect(view.objections).toEqual([
      { journalId: 'unnamed', kind: 'ledger', reason: REASON, host: '', dir: '', sends: 0, at: 1_893_456_011_000 },
    ]);
    await expect(account.ledger.resume('ann', 'continue')).rejects.toThrow(ConflictError);
    const asked = await nextBegin(account.sender, await makeCompact(), 'P-6');
    expect(await account.sender.beginSend(asked)).toMatchObject({ kind: 'objected' });
  });

  it('takes the outcome of the attempt that is under way, known by its epoch, and of no other', async () => {
    expect(await account.sender.readSending()).toEqual([SENDING]);
    for (const other of [{ token: 'e:1' }, { token: 'a-token' }, { attempt: 2 }]) {
      expect(await finish({ ...SENDING, ...other }, ACCEPTED)).toEqual({ recorded: false });
    }
    expect(await finish(SENDING, ACCEPTED)).toEqual({ recorded: true });
    expect(await account.ledger.get('P-4')).toMatchObject({ state: 'in_progress', txhash: 'hash-new' });
  });

  it('takes a late outcome of its last attempt; that of an earlier one, whose epoch it did not keep, as a late payment', async () => {
    const second = { payoutId: 'P-3', attempt: 2, token: 'e:2' };
    const first = { payoutId: 'P-3', attempt: 1, token: 'e:1' };
    expect(await account.sender.findForgottenSends([first, { ...first, token: 'a-token' }, second])).toHaveLength(1);
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    expect(await finish(second, { kind: 'accepted', txhash: 'hash-3' })).toEqual({ recorded: true });
    expect(await account.ledger.get('P-3')).toMatchObject({
      ...{ state: 'in_progress', txhash: 'hash-3', lateTxhash: 'hash-new' },
    });
  });
});

/** What a version that reads up to this format gets. */
async function pauseAsFormat(format: number): Promise<unknown> {
  const source = scriptSource('pause-account').replace(/local FORMAT = \d/, `local FORMAT = ${format}`);
  const keys = account.connection.keys.ofEveryScript;
  return account.redis.eval(source, keys.length, ...keys, 1, 'ann', 'lunch');
}

it('a ledger with held payouts is of format 3 from the first one on; the version before reads it only before', async () => {
  await account.redis.unlink(Object.keys(await account.dump()));
  await enqueue('p');
  await enter('cancelled', 'q');
  expect(await account.sender.holdPayout('q', 0, HOLD)).toBe(false);
  expect(await formatOf()).toBe('2');
  expect(await account.sender.holdPayout('p', 0, HOLD)).toBe(true);
  expect([await formatOf(), await pauseAsFormat(2)]).toEqual(['3', [-10, 3]]);
  await change('p', 'held', 'cancelled', ANN);
  expect(await formatOf()).toBe('3');
  expect(await readAccountStats(account.connection)).toMatchObject({ cancelled: 2, held: 0 });
});

describe('a compact ledger', () => {
  const fieldsOf = async () => account.redis.hkeys(account.connection.keys.txhashBuckets('hash-new')[0] ?? '');
  const complete = async () => change('P-4', 'in_progress', 'completed');
  const remove = async () => removePayouts(account.connection, 'completed', Number.MAX_SAFE_INTEGER, 100);

  it('is one from the first lease of this version on; then the version before is refused', async () => {
    await enter('cancelled', 'p');
    const older = { ...(await account.sender.readSender()), sendCount: 5 };
    expect(await account.sender.acquireLease('new', older, JOURNAL, 0)).toBeUndefined();
    expect([await formatOf(), await pauseAsFormat(3)]).toEqual(['2', 0]);
    await makeCompact();
    expect([await formatOf(), await pauseAsFormat(3)]).toEqual(['4', [-10, 4]]);
  });

  it.each<[string, (text: string) => string]>([
    ['whole', (text) => text.toUpperCase()],
    ['by a part of its digest', (text) => `0x${text.toUpperCase()}`],
  ])('finds a transaction that the version before indexed %s, in any spelling', async (how, spell) => {
    await makeCompact();
    const txhash = spell('ab'.repeat(32));
    const { keys } = account.connection;
    await finish(SENDING, { kind: 'accepted', txhash });
    const bucket = `${keys.prefix}:txhash:${sha1(txhash).slice(0, 3)}`;
    await account.redis.del(...keys.txhashBuckets(txhash));
    await account.redis.hset(bucket, how === 'whole' ? txhash : ` ${sha1(txhash).slice(3, 23)}`, 'P-4');
    for (const given of [txhash, 'ab'.repeat(32), `0x${'AB'.repeat(32)}`]) {
      expect(await account.ledger.findByTxhash(given)).toBe('P-4');
      await expect(follow(given)).rejects.toThrow('already belongs to payout P-4');
    }
    // Retention leaves nothing of it behind.
    await complete();
    expect((await remove()).map(({ payoutId }) => payoutId)).toContain('P-4');
    expect(await account.redis.exists(bucket, ...keys.txhashBuckets(txhash))).toBe(0);
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
      expect(await account.ledger.get('P-3')).toMatchObject({
        state: 'unknown',
        message: expect.stringContaining('P-4'),
      });
      expect(await account.ledger.findByTxhash('hash-new')).toBe('P-4');
      await remove();
      expect([await stateOf('P-4'), await fieldsOf()]).toEqual([undefined, []]);
    },
  );
});

it('a ledger of a newer format is refused to every script and reader, and left as it is', async () => {
  await account.redis.hset(account.connection.keys.ledger, 'format', '5');
  const uses = [
    ...SCRIPT_NAMES.map((name) => async () => account.connection.run(name, [])),
    async () => readAccountStats(account.connection),
    async () => peekSenderView(account.connection),
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
