import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { adoptLedger } from '../../src/ledger/adopt-ledger.js';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import { begin, HOLD, JOURNAL, NO_BREAKER, OBJECTION, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

describe('readAccountStats', () => {
  it('shows an account that nobody has used', async () => {
    expect(await readAccountStats(account.connection)).toEqual({
      platformId: account.platformId,
      ...Object.fromEntries(PAYOUT_STATES.map((state) => [state, 0])),
      paused: false,
      pausedReason: null,
      pausedBy: null,
      pausedAt: null,
      objections: [],
      journals: [],
      latePayments: 0,
      sender: null,
      sends: 0,
      rejectionsInARow: 0,
      unknownsInARow: 0,
      withoutJob: 0,
      outboxUnreadable: 0,
      oldestAgeMs: { queued: null, held: null, sending: null, in_progress: null, unknown: null },
    });
  });

  it('counts by state, and reports sends, the breaker, the pause and the sender', async () => {
    await account.ledger.enqueue(['p', 'q', 'r', 's'].map((name) => aPayout(name)));
    const lease = await takeLease(account.sender, 'one');
    await account.sender.renewLease(lease);
    const rejected = { kind: 'rejected', message: 'm' } as const;
    await account.sender.finishSend(await begin(account.sender, lease, 'p'), rejected, NO_BREAKER, 0);
    await account.sender.finishSend(
      await begin(account.sender, lease, 'q'),
      { kind: 'unknown', reason: 'r' },
      NO_BREAKER,
      0,
    );
    await begin(account.sender, lease, 'r');
    await account.ledger.pause('ann', 'holiday');
    expect(await readAccountStats(account.connection)).toMatchObject({
      queued: 1,
      sending: 1,
      rejected: 1,
      unknown: 1,
      in_progress: 0,
      paused: true,
      pausedReason: 'holiday',
      pausedBy: 'ann',
      pausedAt: '2030-01-01T00:00:00.000Z',
      sender: { owner: 'one', epoch: 1, heartbeat: 1 },
      sends: 3,
      rejectionsInARow: 1,
      unknownsInARow: 1,
      withoutJob: 4,
    });
  });

  it('tells members of the outbox that make no sense from payouts that wait for a job', async () => {
    const { redis, connection, ledger } = account;
    await ledger.enqueue([aPayout('p')]);
    await redis.zadd(connection.keys.outbox, 1, 'refunding p', 2, Buffer.of(0xff), 3, 'queued p\n');
    expect(await readAccountStats(connection)).toMatchObject({ withoutJob: 1, outboxUnreadable: 3 });
  });

  it('names the journals that have its sends, those that contradict it, and counts late payments', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const lease = await takeLease(account.sender, 'one');
    const attempt = await begin(account.sender, lease, 'p');
    await account.sender.finishSend(attempt, { kind: 'unknown', reason: 'r' }, NO_BREAKER, 0);
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'settled' });
    await account.sender.finishSend(attempt, { kind: 'accepted', txhash: 'h' }, NO_BREAKER, 0);
    await account.sender.object(OBJECTION);
    expect(await readAccountStats(account.connection)).toMatchObject({
      paused: false,
      objections: [OBJECTION],
      journals: [JOURNAL],
      latePayments: 1,
    });
  });

  it('shows an objection that nobody can read, and a journal of which nothing is known', async () => {
    const { redis, connection } = account;
    await redis.hset(connection.keys.objections, {
      unnamed: '{"reason":"older","at":"7"}',
      torn: '{"rea',
      number: '5',
    });
    await redis.hset(connection.keys.journals, { 'j-torn': '[]' });
    const { objections, journals } = await readAccountStats(connection);
    const empty = { kind: 'ledger', reason: 'no reason was noted', host: '', dir: '', sends: 0, at: 0 };
    expect(objections).toEqual([
      { ...empty, journalId: 'number' },
      { ...empty, journalId: 'torn' },
      { ...empty, journalId: 'unnamed', reason: 'older', at: 7 },
    ]);
    expect(journals).toEqual([{ journalId: 'j-torn', host: '', dir: '', sends: 0, token: '', at: 0 }]);
  });

  it('reports for how long the oldest of a state has been in it, not how old it is', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    account.clock.advance(5_000);
    const lease = await takeLease(account.sender, 'one');
    await account.sender.finishSend(
      await begin(account.sender, lease, 'p'),
      { kind: 'unknown', reason: 'r' },
      NO_BREAKER,
      0,
    );
    account.clock.advance(2_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs).toEqual({
      queued: 7_000,
      held: null,
      sending: null,
      in_progress: null,
      unknown: 2_000,
    });
    await account.sender.holdPayout('q', 0, HOLD);
    account.clock.advance(3_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs).toMatchObject({ queued: null, held: 3_000 });
    await account.ledger.change({ payoutId: 'q', from: 'held', to: 'queued', by: 'ann', reason: 'r' });
    account.clock.advance(-60_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs).toMatchObject({ queued: 0, unknown: 0 });
  });

  it('keeps the place and the age of a payout that was put back without having been sent', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const lease = await takeLease(account.sender, 'one');
    for (let round = 0; round < 3; round += 1) {
      account.clock.advance(5_000);
      await account.sender.revertSend(await begin(account.sender, lease, 'p'), 'the gateway is not reachable');
      const { redis, connection } = account;
      expect(await redis.zrange(connection.keys.state('queued'), '0', '-1')).toEqual(['p', 'q']);
    }
    expect((await readAccountStats(account.connection)).oldestAgeMs.queued).toBe(15_000);
  });

  it('counts the age of a payout that an operator put back from then on, at the end of the queue', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    const lease = await takeLease(account.sender, 'one');
    await account.sender.revertSend(await begin(account.sender, lease, 'p'), 'the gateway is not reachable');
    const rejected = { kind: 'rejected', message: 'm' } as const;
    await account.sender.finishSend(await begin(account.sender, lease, 'p'), rejected, NO_BREAKER, 0);
    account.clock.advance(60_000);
    await account.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'r' });
    const { redis, connection } = account;
    expect(await redis.zrange(connection.keys.state('queued'), '0', '-1')).toEqual(['q', 'p']);
    await account.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled', by: 'ann', reason: 'r' });
    expect((await readAccountStats(account.connection)).oldestAgeMs.queued).toBe(0);
  });

  it('keeps the age of a payout that an operator put back, when it is put back without having been sent', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const lease = await takeLease(account.sender, 'one');
    const rejected = { kind: 'rejected', message: 'm' } as const;
    await account.sender.finishSend(await begin(account.sender, lease, 'p'), rejected, NO_BREAKER, 0);
    account.clock.advance(60_000);
    await account.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'r' });
    account.clock.advance(5_000);
    await account.sender.revertSend(await begin(account.sender, lease, 'p'), 'the gateway is not reachable');
    account.clock.advance(1_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs.queued).toBe(6_000);
  });

  it('shows no sender once the lease was given back or ended by an adoption', async () => {
    await account.sender.releaseLease(await takeLease(account.sender, 'one'));
    expect((await readAccountStats(account.connection)).sender).toBeNull();
    const journals = { read: [], givenUp: [] };
    await adoptLedger(account.connection, { epoch: 5, sendCount: 5 }, 'adopted', journals, { by: 'ann', reason: 'r' });
    expect((await readAccountStats(account.connection)).sender).toBeNull();
  });
});
