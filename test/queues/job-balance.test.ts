import { expect, it } from '@jest/globals';
import type { StateWithJob } from '../../src/ledger/states.js';
import { countDuePayouts, readJobBalance, type JobBalance } from '../../src/queues/job-balance.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { names } from '../ledger/support/use-account.js';
import { rig, useRig } from './support/queue-rig.js';

useRig();

const balance = async (state: StateWithJob): Promise<JobBalance> =>
  readJobBalance(rig.account.connection, rig.queues, state);

it('counts jobs in every structure, also of a payout that is being sent, for the payouts of its state', async () => {
  await rig.enqueue([
    'a',
    'b',
    aPayout('c', { priority: 1 }),
    aPayout('d', { notBefore: '2031-01-01T00:00:00Z' }),
    'e',
  ]);
  await rig.accept('e');
  const { withdraw, transactionstatus } = rig.queues;
  await rig.account.redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('active'));
  await rig.account.redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('paused'));
  // Its job still runs; not counted, it would hide a job that is lost.
  await rig.account.ledger.change({ payoutId: 'a', from: 'queued', to: 'sending' });
  expect(await balance('queued')).toEqual({ payouts: 4, jobs: 4, outboxed: 0, lost: 0 });
  expect(await balance('in_progress')).toEqual({ payouts: 1, jobs: 1, outboxed: 0, lost: 0 });
  for (const structure of ['active', 'paused', 'prioritized', 'delayed']) {
    await rig.account.redis.del(withdraw.toKey(structure));
  }
  await rig.account.redis.del(transactionstatus.toKey('delayed'));
  expect([(await balance('queued')).lost, (await balance('in_progress')).lost]).toEqual([4, 1]);
});

it('expects no job yet of payouts that the outbox names, of their own state only', async () => {
  const { ledger, redis, connection } = rig.account;
  await ledger.enqueue([aPayout('p'), aPayout('q')]);
  await redis.zadd(connection.keys.outbox, 1, 'refunding p', 1, 'in_progress', 1, 'in_progress other');
  expect(await balance('queued')).toEqual({ payouts: 2, jobs: 0, outboxed: 2, lost: 0 });
  expect(await balance('in_progress')).toEqual({ payouts: 0, jobs: 0, outboxed: 1, lost: -1 });
});

it('counts what a long outbox does not show for every state, but takes no members that make no sense for payouts', async () => {
  const { ledger, redis, connection } = rig.account;
  await ledger.enqueue(names(1_200).map((payoutId) => aPayout(payoutId)));
  expect(await balance('queued')).toMatchObject({ payouts: 1_200, outboxed: 1_200, lost: 0 });
  expect((await balance('in_progress')).outboxed).toBe(200);
  // They would hide lost jobs.
  const strange = names(2_500).map((name) => [1, `refunding ${name}`]);
  await redis.del(connection.keys.outbox);
  await redis.zadd(connection.keys.outbox, ...strange.flat());
  expect(await balance('queued')).toEqual({ payouts: 1_200, jobs: 0, outboxed: 0, lost: 1_200 });
});

it('counts queued payouts but for those whose notBefore is in the future', async () => {
  const { clock, connection } = rig.account;
  const count = async (): Promise<number> => countDuePayouts(connection, rig.queues);
  expect(await count()).toBe(0);
  const notBefore = (delayMs: number): string => new Date(clock.wallNow() + delayMs).toISOString();
  await rig.enqueue([
    'P-1',
    aPayout('P-2', { priority: 3 }),
    aPayout('P-3', { notBefore: notBefore(3_600_000) }),
    aPayout('P-4', { notBefore: notBefore(2_000) }),
  ]);
  expect(await count()).toBe(2);
  clock.advance(1_999);
  expect(await count()).toBe(2);
  clock.advance(2);
  expect(await count()).toBe(3);
});
