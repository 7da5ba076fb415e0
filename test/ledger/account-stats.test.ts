import { describe, expect, it } from '@jest/globals';
import { adoptLedger } from '../../src/ledger/adopt-ledger.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import { HOLD, JOURNAL, OBJECTION, takeLease } from './contract/ledger-rig.js';
import {
  account,
  ACCEPTED,
  ANN,
  beginOne,
  change,
  enqueue,
  finish,
  REJECTED,
  sendAs,
  UNKNOWN,
  useAccount,
} from './support/use-account.js';

useAccount();

const stats = async () => readAccountStats(account.connection);
const revert = async (payoutId: string) =>
  account.sender.revertSend(await beginOne(payoutId), 'the gateway is not reachable');

describe('the statistics of an account', () => {
  it('are of one that nobody has used', async () => {
    expect(await stats()).toEqual({
      platformId: account.platformId,
      ...Object.fromEntries(PAYOUT_STATES.map((state) => [state, 0])),
      ...{ paused: false, pausedReason: null, pausedBy: null, pausedAt: null },
      ...{ objections: [], journals: [], latePayments: 0, sender: null, sends: 0 },
      ...{ rejectionsInARow: 0, unknownsInARow: 0, withoutJob: 0, outboxUnreadable: 0 },
      oldestAgeMs: { queued: null, held: null, sending: null, in_progress: null, unknown: null },
    });
  });

  it('count by state, and report sends, the breaker, the pause and the sender', async () => {
    await enqueue('p', 'q', 'r', 's');
    await sendAs(REJECTED, 'p');
    await sendAs(UNKNOWN, 'q');
    await beginOne('r');
    await account.sender.renewLease({ owner: 'one', epoch: 3 });
    await account.ledger.pause('ann', 'holiday');
    expect(await stats()).toMatchObject({
      ...{ queued: 1, sending: 1, rejected: 1, unknown: 1, in_progress: 0, sends: 3, withoutJob: 4 },
      ...{ paused: true, pausedReason: 'holiday', pausedBy: 'ann', pausedAt: '2030-01-01T00:00:00.000Z' },
      ...{ sender: { owner: 'one', epoch: 3, heartbeat: 1 }, rejectionsInARow: 1, unknownsInARow: 1 },
    });
  });

  it('tell members of the outbox that make no sense from payouts that wait for a job', async () => {
    await enqueue('p');
    const { outbox } = account.connection.keys;
    await account.redis.zadd(outbox, 1, 'refunding p', 2, Buffer.of(0xff), 3, 'queued p\n');
    expect(await stats()).toMatchObject({ withoutJob: 1, outboxUnreadable: 3 });
  });

  it('name journals, objections and late payments, and no sender once the lease was given back or ended', async () => {
    await enqueue('p');
    const [attempt] = await sendAs(UNKNOWN, 'p');
    await change('p', 'unknown', 'cancelled', ANN);
    if (attempt !== undefined) await finish(attempt, ACCEPTED);
    await account.sender.object(OBJECTION);
    const told = { paused: false, objections: [OBJECTION], journals: [JOURNAL], latePayments: 1 };
    expect(await stats()).toMatchObject(told);
    await account.sender.releaseLease(await takeLease(account.sender, 'one'));
    expect((await stats()).sender).toBeNull();
    const nothing = { read: [], givenUp: [] };
    await adoptLedger(account.connection, { epoch: 5, sendCount: 5 }, 'adopted', nothing, ANN);
    expect((await stats()).sender).toBeNull();
  });

  it('show an objection that nobody can read, and a journal of which nothing is known', async () => {
    const { redis, connection } = account;
    const unreadable = { unnamed: '{"reason":"older","at":"7"}', torn: '{"rea', number: '5' };
    await redis.hset(connection.keys.objections, unreadable);
    await redis.hset(connection.keys.journals, { 'j-torn': '[]' });
    const { objections, journals } = await stats();
    const empty = { kind: 'ledger', reason: 'no reason was noted', host: '', dir: '', sends: 0, at: 0 };
    expect(objections).toEqual([
      { ...empty, journalId: 'number' },
      { ...empty, journalId: 'torn' },
      { ...empty, journalId: 'unnamed', reason: 'older', at: 7 },
    ]);
    expect(journals).toEqual([{ journalId: 'j-torn', host: '', dir: '', sends: 0, token: '', at: 0 }]);
  });
});

describe('the age of the oldest', () => {
  const ages = async () => (await stats()).oldestAgeMs;
  const inQueue = async () => account.redis.zrange(account.connection.keys.state('queued'), '0', '-1');
  const requeue = async () => change('p', 'rejected', 'queued', ANN);

  it('is for how long it has been in its state, not how old it is', async () => {
    await enqueue('p', 'q');
    account.clock.advance(5_000);
    await sendAs(UNKNOWN, 'p');
    account.clock.advance(2_000);
    expect(await ages()).toEqual({ queued: 7_000, held: null, sending: null, in_progress: null, unknown: 2_000 });
    await account.sender.holdPayout('q', 0, HOLD);
    account.clock.advance(3_000);
    expect(await ages()).toMatchObject({ queued: null, held: 3_000 });
    await change('q', 'held', 'queued', ANN);
    account.clock.advance(-60_000);
    expect(await ages()).toMatchObject({ queued: 0, unknown: 0 });
  });

  it('counts from when an operator put it back, at the end of the queue, also when it is then put back unsent', async () => {
    await enqueue('p', 'q');
    for (let round = 0; round < 3; round += 1) {
      account.clock.advance(5_000);
      await revert('p');
      // Put back without having been sent, it keeps its place.
      expect(await inQueue()).toEqual(['p', 'q']);
    }
    expect((await ages()).queued).toBe(15_000);
    await sendAs(REJECTED, 'p');
    account.clock.advance(60_000);
    await requeue();
    expect(await inQueue()).toEqual(['q', 'p']);
    await change('q', 'queued', 'cancelled', ANN);
    expect((await ages()).queued).toBe(0);
    account.clock.advance(5_000);
    await revert('p');
    account.clock.advance(1_000);
    expect((await ages()).queued).toBe(6_000);
  });
});
