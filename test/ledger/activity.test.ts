import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { adoptLedger, adoptSends, holdSendablePayouts } from '../../src/ledger/adopt-ledger.js';
import { begin, HOLD, NO_BREAKER, OBJECTION, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const ANN = { by: 'ann', reason: 'a wrong file' };

async function readAll(limit = 100): Promise<string[]> {
  const found: string[] = [];
  let before: string | undefined;
  do {
    const page = await readActivity(account.connection, limit, before);
    expect(page.activities.length).toBeLessThanOrEqual(limit);
    found.push(
      ...page.activities.map(({ what, by, payoutId = '-', reason }) => `${what} ${payoutId} ${by}: ${reason}`),
    );
    before = page.next;
  } while (before !== undefined);
  return found;
}

it('does not note what the sender holds, however much it is: acts of operators stay', async () => {
  await account.ledger.enqueue(['p', 'q'].map((payoutId) => aPayout(payoutId)));
  for (const payoutId of ['p', 'q']) await account.sender.holdPayout(payoutId, 0, { ...HOLD, isTampering: true });
  expect(await readAll()).toEqual([]);
  await account.ledger.change({ payoutId: 'p', from: 'held', to: 'cancelled', ...ANN });
  expect(await readAll()).toHaveLength(1);
});

/** Everything that the sender and an operator do to some payouts. */
async function actOnAll(): Promise<void> {
  const { ledger, sender, connection } = account;
  await ledger.enqueue(['p', 'q', 'r', 's'].map((payoutId) => aPayout(payoutId)));
  await ledger.change({ payoutId: 's', from: 'queued', to: 'cancelled', ...ANN });
  const lease = await takeLease(sender, 'one');
  const rule = { maxRejectionsInARow: 1, maxUnknownsInARow: 9 };
  await sender.finishSend(await begin(sender, lease, 'p'), { kind: 'rejected', message: 'no funds' }, rule, 0);
  await ledger.resume('ann', 'topped up');
  await ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', ...ANN });
  for (const payoutId of ['q', 'r']) {
    const attempt = await begin(sender, lease, payoutId);
    await sender.finishSend(attempt, { kind: 'unknown', reason: 'silence' }, NO_BREAKER, 0);
  }
  await ledger.change({ payoutId: 'q', from: 'unknown', to: 'in_progress', txhash: 'hash-1', ...ANN });
  await ledger.change({ payoutId: 'q', from: 'in_progress', to: 'completed' });
  await ledger.change({ payoutId: 'r', from: 'unknown', to: 'queued', ...ANN });
  await sender.object(OBJECTION);
  const request = { paymentId: 7, amount: '1', addressTo: 'w' };
  const forgotten = { payoutId: 't', attempt: 1, token: 't', request };
  await adoptSends(connection, [forgotten], { ...ANN, doubtMs: 0 });
  await holdSendablePayouts(connection, { ...ANN, doubtMs: 0 });
  const journals = { read: [], givenUp: [OBJECTION.journalId] };
  await adoptLedger(connection, { epoch: 1, sendCount: 1 }, 'adopted', journals, ANN);
  await ledger.change({ payoutId: 'r', from: 'unknown', to: 'cancelled', ...ANN });
}

const EVERYTHING = [
  'written_off r ann: a wrong file',
  'adopted - ann: a wrong file',
  'made_unknown - ann: a wrong file',
  'recovered t ann: a wrong file',
  'objected - j-two: it forgot a send',
  'resolved_not_sent r ann: a wrong file',
  'resolved_sent q ann: a wrong file',
  'retried p ann: a wrong file',
  'resumed - ann: topped up',
  'paused - worker: 1 rejections in a row, the last: no funds',
  'cancelled s ann: a wrong file',
];

/** An act for many payouts is one for each in the events. */
const EVERY_EVENT = EVERYTHING.flatMap((line) =>
  line.startsWith('made_unknown') ? ['made_unknown r ann: a wrong file', 'made_unknown p ann: a wrong file'] : [line],
);

describe('the activity of an account', () => {
  it('is empty where nobody did anything, and what the sender and the gateway do is not listed', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await begin(account.sender, await takeLease(account.sender, 'one'), 'p');
    expect(await readActivity(account.connection, 5)).toEqual({ activities: [], next: undefined });
    expect(await account.redis.exists(account.connection.keys.activity)).toBe(0);
  });

  it('lists who did what and why, the newest first', async () => {
    await actOnAll();
    expect(await readAll()).toEqual(EVERYTHING);
    const [last] = (await readActivity(account.connection, 1)).activities;
    expect(last).toEqual({ at: '2030-01-01T00:00:00.000Z', ...ANN, what: 'written_off', payoutId: 'r', count: 1 });
  });

  it('comes in pages of any size', async () => {
    await actOnAll();
    for (const limit of [1, 2, 5, 10, 11]) expect(await readAll(limit)).toEqual(EVERYTHING);
  });

  it('of a ledger of before comes from its events', async () => {
    await actOnAll();
    await account.redis.del(account.connection.keys.activity);
    expect(await readAll()).toEqual(EVERY_EVENT);
    expect(await readAll(3)).toEqual(EVERY_EVENT);
  });

  it('of before and of now is one list', async () => {
    await actOnAll();
    await account.redis.del(account.connection.keys.activity);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await account.ledger.pause('bob', 'lunch');
    await account.ledger.resume('bob', 'back');
    for (const limit of [1, 2, 3, 100]) {
      expect(await readAll(limit)).toEqual(['resumed - bob: back', 'paused - bob: lunch', ...EVERY_EVENT]);
    }
  });

  it('has one line for a decision about many payouts, however many scripts carry it out', async () => {
    const { ledger, connection } = account;
    const ids = ['a', 'b', 'c', 'd'];
    await ledger.enqueue(ids.map((payoutId) => aPayout(payoutId)));
    for (const payoutId of ids) {
      await ledger.changeMany({ from: 'queued', to: 'cancelled', payouts: [{ payoutId }], isOneAct: true, ...ANN });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect((await readActivity(connection, 9)).activities).toMatchObject([{ what: 'cancelled', count: 4 }]);
    expect((await readActivity(connection, 1)).activities).toHaveLength(1);
    account.clock.advance(60_001);
    await ledger.enqueue([aPayout('e')]);
    await ledger.changeMany({ from: 'queued', to: 'cancelled', payouts: [{ payoutId: 'e' }], isOneAct: true, ...ANN });
    expect((await readActivity(connection, 9)).activities).toMatchObject([{ count: 1 }, { count: 4 }]);
  });

  it('survives that the events are trimmed', async () => {
    await actOnAll();
    await account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 0);
    expect(await readAll()).toEqual(EVERYTHING);
  });

  it('of before is searched in steps, each of which is bounded', async () => {
    const { connection, ledger } = account;
    await ledger.pause('ann', 'long ago');
    await ledger.enqueue(Array.from({ length: 6_000 }, (_, index) => aPayout(`p${index}`)));
    await account.redis.del(connection.keys.activity);
    const first = await readActivity(connection, 10);
    expect(first).toMatchObject({ activities: [], next: expect.stringMatching(/^event /) });
    expect(await readAll()).toEqual(['paused - ann: long ago']);
  });

  it('is kept within bounds', async () => {
    const { keys, run } = account.connection;
    await account.redis.eval(
      `for i = 1, 10300 do redis.call('XADD', KEYS[1], '*', 'type', 'paused', 'payoutId', '', 'from', '', 'to', '', 'at', i, 'by', 'ann', 'reason', '', 'count', 1, 'since', '') end`,
      1,
      keys.activity,
    );
    await run('pause-account', [account.clock.wallNow(), 'ann', 'holiday']);
    expect(await account.redis.xlen(keys.activity)).toBeLessThan(10_150);
  });
});
