import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisClient } from '../../src/base/redis.js';
import { LIST_REACH, toJobId } from '../../src/queues/payout-queues.js';
import { removeCancelledJobs, removeNextCancelledJobs } from '../../src/queues/remove-cancelled-jobs.js';
import type { LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { openQueueRig, type QueueRig } from './support/queue-rig.js';

let rig: QueueRig;
beforeEach(() => {
  rig = openQueueRig();
});
afterEach(async () => rig.close());

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
    const payout = { payoutId: 'p', paymentId: 7, amount: '1', addressTo: 'w', ...more };
    await fill(LIST_REACH + 5, 'head');
    await rig.queues.addWithdrawJobs([payout]);
    expect(await rig.account.redis.zcard(key(structure))).toBe(1);
    await rig.queues.removeWithdrawJob({ payoutId: 'p' });
    expect(await rig.account.redis.zcard(key(structure))).toBe(0);
  });
});
