import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Worker, type Job } from 'bullmq';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { QUEUE_NAMES, toJobId, type JobSource } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { openQueueRig, type QueueRig } from './support/queue-rig.js';

let rig: QueueRig;
beforeEach(() => {
  rig = openQueueRig();
});
afterEach(async () => rig.close());

const source = (payoutId: string, more: Partial<JobSource> = {}): JobSource => ({
  payoutId,
  paymentId: 7,
  amount: '12.5',
  addressTo: 'wallet-1',
  ...more,
});

/** Lets a worker take jobs until it has ended `count` of them; every one is given to `work`. */
async function runJobs(count: number, work: (job: Job) => Promise<unknown>): Promise<string[]> {
  const connection = connectRedis(process.env['REDIS_URL'] ?? '', 'queue');
  const taken: string[] = [];
  const worker = new Worker(
    QUEUE_NAMES.withdraw,
    async (job) => {
      taken.push((job.data as { payoutId: string }).payoutId);
      await work(job);
    },
    { connection, prefix: rig.account.connection.keys.prefix, concurrency: 1 },
  );
  try {
    await new Promise<void>((resolve) => {
      let ended = 0;
      const end = (): void => {
        ended += 1;
        if (ended === count) resolve();
      };
      worker.on('completed', end);
      worker.on('failed', end);
    });
  } finally {
    await worker.close();
    await closeRedis(connection);
  }
  return taken;
}

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
    expect(jobs.map((job) => job.data.payoutId).sort()).toEqual(['p', 'q', 'r']);
    expect((await rig.queues.withdraw.getJob(toJobId(source('p'))))?.data.amount).toBe('12.5');
  });

  it('carries what the dashboard shows and nothing else', async () => {
    const payout = { ...source('p', { symbol: 'USD', txhash: 'h', requeueCount: 2 }), metadata: { secret: 1 } };
    await rig.queues.addWithdrawJobs([payout]);
    const job = await rig.queues.withdraw.getJob('p~2');
    expect(job?.data).toEqual({
      payoutId: 'p',
      paymentId: 7,
      amount: '12.5',
      addressTo: 'wallet-1',
      symbol: 'USD',
      txhash: 'h',
    });
  });

  it('gives out in the order of arrival, then by priority, 1 first', async () => {
    await rig.queues.addWithdrawJobs([
      source('low', { priority: 9 }),
      source('first'),
      source('high', { priority: 1 }),
      source('second'),
    ]);
    expect(await runJobs(4, async () => Promise.resolve())).toEqual(['first', 'second', 'high', 'low']);
  });

  it('holds a payout back until its time', async () => {
    const inAnHour = new Date(rig.account.clock.wallNow() + 3_600_000).toISOString();
    const past = new Date(rig.account.clock.wallNow() - 1).toISOString();
    await rig.queues.addWithdrawJobs([source('later', { notBefore: inAnHour }), source('now', { notBefore: past })]);
    const delayed = await rig.queues.withdraw.getDelayed();
    expect(delayed.map((job) => [job.data.payoutId, job.opts.delay])).toEqual([['later', 3_600_000]]);
    expect((await rig.queues.withdraw.getWaiting()).map((job) => job.data.payoutId)).toEqual(['now']);
  });

  it('adds a job at once where notBefore is no time, and those of the others beside it', async () => {
    await rig.queues.addWithdrawJobs([source('p'), source('strange', { notBefore: 'now' }), source('q')]);
    const jobs = await rig.queues.withdraw.getWaiting();
    expect(jobs.map((job) => job.data.payoutId).sort()).toEqual(['p', 'q', 'strange']);
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

describe('removeWithdrawJob', () => {
  it('takes the job of that requeue count out, and is content when there is none', async () => {
    await rig.queues.addWithdrawJobs([source('p'), source('p', { requeueCount: 1 })]);
    await rig.queues.removeWithdrawJob(source('p'));
    await rig.queues.removeWithdrawJob(source('nobody'));
    expect((await rig.queues.withdraw.getWaiting()).map((job) => job.id)).toEqual(['p~1']);
  });
});
