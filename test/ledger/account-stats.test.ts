import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readAccountStats } from '../../src/ledger/account-stats.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import { begin, NO_BREAKER, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
let sender: RedisSenderLedger;
beforeEach(() => {
  account = openTestAccount();
  sender = new RedisSenderLedger(account.connection, 'reply');
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
      sender: null,
      sends: 0,
      rejectionsInARow: 0,
      unknownsInARow: 0,
      withoutJob: 0,
      oldestAgeMs: { queued: null, sending: null, in_progress: null, unknown: null },
    });
  });

  it('counts by state, and tells sends, the breaker, the pause and the sender', async () => {
    await account.ledger.enqueue(['p', 'q', 'r', 's'].map((name) => aPayout(name)));
    const lease = await takeLease(sender, 'one');
    await sender.beatLease(lease);
    const rejected = { kind: 'rejected', message: 'm' } as const;
    await sender.finishSend(await begin(sender, lease, 'p'), rejected, NO_BREAKER);
    await sender.finishSend(await begin(sender, lease, 'q'), { kind: 'unknown', reason: 'r' }, NO_BREAKER);
    await begin(sender, lease, 'r');
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
      sender: { owner: 'one', epoch: 1, beat: 1 },
      sends: 3,
      rejectionsInARow: 1,
      unknownsInARow: 1,
      withoutJob: 4,
    });
  });

  it('tells for how long the oldest of a state has been in it, not how old it is', async () => {
    await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
    account.clock.advance(5_000);
    const lease = await takeLease(sender, 'one');
    await sender.finishSend(await begin(sender, lease, 'p'), { kind: 'unknown', reason: 'r' }, NO_BREAKER);
    account.clock.advance(2_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs).toEqual({
      queued: 7_000,
      sending: null,
      in_progress: null,
      unknown: 2_000,
    });
    account.clock.advance(-60_000);
    expect((await readAccountStats(account.connection)).oldestAgeMs).toMatchObject({ queued: 0, unknown: 0 });
  });

  it('shows no sender once the lease was given back or ended by an adoption', async () => {
    await sender.releaseLease(await takeLease(sender, 'one'));
    expect((await readAccountStats(account.connection)).sender).toBeNull();
    await account.connection.run('adopt-ledger', [0, 'ann', 'r', 5, 5]);
    expect((await readAccountStats(account.connection)).sender).toBeNull();
  });
});
