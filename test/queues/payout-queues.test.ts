import { describe, expect, it, jest } from '@jest/globals';
import type { Job } from 'bullmq';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { LIST_REACH, toJobId, type JobSource } from '../../src/queues/payout-queues.js';
import { removeCancelledJobs, removeNextCancelledJobs } from '../../src/queues/remove-cancelled-jobs.js';
import type { RedisClient } from '../../src/base/redis.js';
import { rig, useRig } from './support/queue-rig.js';

useRig();

const PAID = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const source = (payoutId: string, more: Partial<JobSource> = {}): JobSource => ({ payoutId, ...PAID, ...more });
const namesOf = (jobs: readonly Job[]): string[] => jobs.map((job) => (job.data as { payoutId: string }).payoutId);

const payoutIdChar = fc.constantFrom(...Array.from('ABZabz0129+/=-:.,_'));
const payoutId = fc.string({ unit: payoutIdChar, minLength: 1, maxLength: 64 });

describe('toJobId', () => {
  it('gives no two payouts, and no two rounds of one, the same id', () => {
    // So few that pairs which a careless escape would join come up for certain.
    const short = fc.string({ unit: fc.constantFrom(':', '3A', '3', 'A'), minLength: 1, maxLength: 2 });
    const one = fc.tuple(fc.oneof(short, payoutId), fc.nat(12));
    fc.assert(
      fc.property(one, one, ([a, roundA], [b, roundB]) => {
        const same = a === b && roundA === roundB;
        expect(toJobId({ payoutId: a, requeueCount: roundA }) === toJobId({ payoutId: b, requeueCount: roundB })).toBe(
          same,
        );
      }),
      { numRuns: 5_000 },
    );
  });

  it('is always one that BullMQ takes, and of a new payout it is that of requeue count 0', async () => {
    fc.assert(
      fc.property(payoutId, fc.nat(12), (name, requeueCount) => {
        const jobId = toJobId({ payoutId: name, requeueCount });
        expect(jobId).not.toContain(':');
        expect(jobId).not.toMatch(/^\d*$/);
      }),
    );
    expect(toJobId({ payoutId: 'p' })).toBe(toJobId({ payoutId: 'p', requeueCount: 0 }));
    await rig.queues.addWithdrawJobs(['a:b', '1', ':::', '0', 'a:b:c'].map((name) => source(name)));
    expect(await rig.queues.withdraw.count()).toBe(5);
  });
});

describe('addWithdrawJobs', () => {
  it('adds a job for each payout, once', async () => {
    await rig.queues.addWithdrawJobs([source('p'), source('q')]);
    await rig.queues.addWithdrawJobs([source('p', { amount: '99' }), source('r')]);
    await rig.queues.addWithdrawJobs([]);
    const jobs = await rig.queues.withdraw.getWaiting();
    expect(namesOf(jobs).sort()).toEqual(['p', 'q', 'r']);
    expect((await rig.queues.withdraw.getJob(toJobId(source('p'))))?.data.amount).toBe('12.5');
  });

  it('carries what the dashboard shows and nothing else', async () => {
    const payout = { ...source('p', { symbol: 'USD', txhash: 'h', requeueCount: 2 }), metadata: { secret: 1 } };
    await rig.queues.addWithdrawJobs([payout]);
    const job = await rig.queues.withdraw.getJob('p~2');
    expect(job?.data).toEqual({ payoutId: 'p', ...PAID, symbol: 'USD', txhash: 'h' });
  });

  it('holds a payout back until its time', async () => {
    const inAnHour = new Date(rig.account.clock.wallNow() + 3_600_000).toISOString();
    const past = new Date(rig.account.clock.wallNow() - 1).toISOString();
    await rig.queues.addWithdrawJobs([source('later', { notBefore: inAnHour }), source('now', { notBefore: past })]);
    const delayed = await rig.queues.withdraw.getDelayed();
    expect(delayed.map((job) => [job.data.payoutId, job.opts.delay])).toEqual([['later', 3_600_000]]);
    expect(namesOf(await rig.queues.withdraw.getWaiting())).toEqual(['now']);
  });
});

describe('addStatusJobs', () => {
  it('adds a poll after the delay, once', async () => {
    await rig.queues.addStatusJobs([source('p', { txhash: 'h' })], 5_000);
    await rig.queues.addStatusJobs([source('p', { txhash: 'h' })], 1);
    const jobs = await rig.queues.transactionstatus.getDelayed();
    expect(jobs.map((job) => [job.data.payoutId, job.data.txhash, job.opts.delay])).toEqual([['p', 'h', 5_000]]);
  });

  it('adds several at once, and none where there is none', async () => {
    await rig.queues.addStatusJobs([], 1);
    await rig.queues.addStatusJobs([source('p'), source('q', { requeueCount: 1 })], 5_000);
    const jobs = await rig.queues.transactionstatus.getDelayed();
    expect(jobs.map((job) => job.id).sort()).toEqual(['p~0', 'q~1']);
  });

  it('adds one without a pipeline, which copies every script of the connection', async () => {
    const pipeline = jest.spyOn(rig.account.redis as Redis, 'pipeline');
    await rig.queues.addStatusJobs([source('p')], 5_000);
    expect(pipeline).not.toHaveBeenCalled();
    await rig.queues.addStatusJobs([source('q'), source('r')], 5_000);
    expect(pipeline).toHaveBeenCalled();
  });
});

const key = (name: string): string => rig.queues.withdraw.toKey(name);
const { signal } = new AbortController();
const jobs = (...payoutIds: string[]): string[] => payoutIds.map((payoutId) => toJobId({ payoutId }));

/** Enqueues payouts with their jobs, the first of them nearest to its turn, and cancels them in the ledger alone. */
async function cancelled(...payoutIds: string[]): Promise<void> {
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await rig.account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
}

/** Jobs that nothing is known of: only their number counts. @param end - where they are added */
async function fill(count: number, end: 'head' | 'tail'): Promise<void> {
  const { redis } = rig.account;
  const step = 5_000;
  for (let start = 0; start < count; start += step) {
    const some = Array.from({ length: Math.min(step, count - start) }, (_, index) => `${end}${start + index}~0`);
    await (end === 'head' ? redis.lpush(key('wait'), ...some) : redis.rpush(key('wait'), ...some));
  }
}

/** Those of the payouts that were enqueued here, the newest first. */
async function left(): Promise<string[]> {
  return (await rig.account.redis.lrange(key('wait'), 0, -1)).filter((jobId) => !/^(head|tail)\d/.test(jobId));
}

/** The connection, doing something right before the script that removes. */
function beforeRemoval(work: (redis: RedisClient) => Promise<unknown>): LedgerConnection {
  const { connection, redis } = rig.account;
  const watched = new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const command = value.bind(target) as (...args: unknown[]) => unknown;
      if (name !== 'payouts:remove-cancelled-jobs') return command;
      return async (...args: unknown[]) => {
        await work(redis);
        return command(...args);
      };
    },
  });
  return { ...connection, redis: watched };
}

describe('removing the jobs of cancelled payouts', () => {
  it('finds them at both ends of a long list and leaves those far from both, and the order of all others', async () => {
    const reach = 500;
    await cancelled('next-1', 'next-2');
    await rig.enqueue(['stays-1']);
    await fill(reach + 200, 'head');
    await cancelled('far');
    await fill(reach + 200, 'head');
    await rig.enqueue(['stays-2']);
    await cancelled('new');
    const before = await rig.account.redis.lrange(key('wait'), 0, -1);
    expect(await removeCancelledJobs(rig.account.connection, rig.queues.withdraw, signal, reach)).toBe(3);
    const gone = new Set(jobs('new', 'next-1', 'next-2'));
    expect(await rig.account.redis.lrange(key('wait'), 0, -1)).toEqual(before.filter((jobId) => !gone.has(jobId)));
    expect(await left()).toEqual(jobs('stays-2', 'far', 'stays-1'));
    expect(await rig.account.redis.exists(key('new~0'), key('next-1~0'), key('far~0'))).toBe(1);
  });

  it('finds all from the tail although jobs are taken and added meanwhile, and takes no other', async () => {
    await fill(300, 'head');
    for (let index = 0; index < 150; index += 1) {
      await cancelled(`c-${index}`);
      if (index % 3 === 0) await fill(2, 'head');
    }
    let [taken, added] = [0, 0];
    const moving = beforeRemoval(async (redis) => {
      taken += 1;
      added += 1;
      await redis.rpop(key('wait'));
      await redis.lpush(key('wait'), `head-more${added}~0`);
    });
    const before = await rig.account.redis.llen(key('wait'));
    expect(await removeNextCancelledJobs(moving, rig.queues.withdraw, signal)).toBe(150);
    expect(taken).toBeGreaterThan(1);
    expect(await rig.account.redis.llen(key('wait'))).toBe(before - 150);
    expect((await left()).filter((jobId) => jobId.startsWith('c-'))).toEqual([]);
  });

  it('looks from the tail as far as it finds some, and no further', async () => {
    await cancelled('c-1');
    await fill(600, 'head');
    await cancelled('c-2');
    await fill(3_000, 'head');
    await cancelled('far');
    expect(await removeNextCancelledJobs(rig.account.connection, rig.queues.withdraw, signal)).toBe(2);
    expect(await left()).toEqual(jobs('far'));
  });

  it.each([removeCancelledJobs, removeNextCancelledJobs])('leaves a job that a worker holds (%p)', async (remove) => {
    await cancelled('held', 'c');
    await rig.account.redis.set(key('held~0:lock'), 'worker');
    expect(await remove(rig.account.connection, rig.queues.withdraw, signal)).toBe(1);
    expect(await left()).toEqual(jobs('held'));
  });
});

describe('removing the job of one payout', () => {
  it('takes that of its requeue count out, and is content when there is none', async () => {
    await rig.queues.addWithdrawJobs([source('p'), source('p', { requeueCount: 1 })]);
    await rig.queues.removeWithdrawJob(source('p'));
    await rig.queues.removeWithdrawJob(source('nobody'));
    expect(await left()).toEqual(['p~1']);
  });

  it('leaves one that stands behind too many others', async () => {
    await rig.enqueue(['far']);
    await fill(LIST_REACH + 5, 'head');
    await rig.enqueue(['new']);
    await rig.queues.removeWithdrawJob({ payoutId: 'far' });
    await rig.queues.removeWithdrawJob({ payoutId: 'new' });
    expect(await left()).toEqual(jobs('far'));
  });

  it.each<[string, object]>([
    ['delayed', { notBefore: '2099-01-01T00:00:00Z' }],
    ['prioritized', { priority: 3 }],
  ])('takes a %s one out beside a long list', async (structure, more) => {
    await fill(LIST_REACH + 5, 'head');
    await rig.queues.addWithdrawJobs([source('p', more)]);
    expect(await rig.account.redis.zcard(key(structure))).toBe(1);
    await rig.queues.removeWithdrawJob({ payoutId: 'p' });
    expect(await rig.account.redis.zcard(key(structure))).toBe(0);
  });
});
