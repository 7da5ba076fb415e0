import { describe, expect, it } from '@jest/globals';
import type { Job } from 'bullmq';
import fc from 'fast-check';
import { type JobSource, LIST_REACH, toJobId } from '../../src/queues/payout-queues.js';
import { removeCancelledJobs, removeNextCancelledJobs } from '../../src/queues/remove-cancelled-jobs.js';
import { aPayout, clock, connection, ledger, names, redis } from '../ledger/support/use-account.js';
import { queues, rig, useRig } from './support/queue-rig.js';
import { readdirSync, readFileSync } from 'node:fs';
import { CompactMap } from '../../src/queues/job-records.js';
import { watchedScript } from '../ledger/scripts/script-scenarios.js';

useRig();

const PAID = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const source = (payoutId: string, more: Partial<JobSource> = {}): JobSource => ({ payoutId, ...PAID, ...more });
const idsOf = (jobs: readonly Job[]) => jobs.map(({ id }) => id).sort();

describe('toJobId', () => {
  const unit = fc.constantFrom(...Array.from('ABZabz0129+/=-:.,_'));
  const payoutId = fc.string({ unit, minLength: 1, maxLength: 64 });

  it('gives no two payouts, and no two rounds of one, the same id', () => {
    // So few that pairs which a careless escape would join come up for certain.
    const short = fc.string({ unit: fc.constantFrom(':', '3A', '3', 'A'), minLength: 1, maxLength: 2 });
    const one = fc.record({ payoutId: fc.oneof(short, payoutId), requeueCount: fc.nat(12) });
    const isSame = fc.property(one, one, (a, b) => {
      const same = a.payoutId === b.payoutId && a.requeueCount === b.requeueCount;
      expect(toJobId(a) === toJobId(b)).toBe(same);
    });
    fc.assert(isSame, { numRuns: 5_000 });
  });

  it('is always one that BullMQ takes, and of a new payout it is that of requeue count 0', async () => {
    fc.assert(
      fc.property(payoutId, fc.nat(12), (name, requeueCount) => {
        expect(toJobId({ payoutId: name, requeueCount })).toMatch(/^(?!\d*$)[^:]*$/);
      }),
    );
    expect(toJobId({ payoutId: 'p' })).toBe(toJobId({ payoutId: 'p', requeueCount: 0 }));
    await queues.addWithdrawJobs(['a:b', '1', ':::', '0', 'a:b:c'].map((name) => source(name)));
    expect(await queues.withdraw.count()).toBe(5);
  });
});

it('adding gives each payout one withdraw job, with what the dashboard shows and nothing else', async () => {
  const { withdraw } = queues;
  const full = { ...source('p', { symbol: 'USD', gatewayId: 'h', requeueCount: 2 }), metadata: { secret: 1 } };
  await queues.addWithdrawJobs([full, source('q')]);
  await queues.addWithdrawJobs([{ ...full, amount: '99' }, source('r')]);
  expect(idsOf(await withdraw.getWaiting())).toEqual(['p~2', 'q~0', 'r~0']);
  expect((await withdraw.getJob('p~2'))?.data).toEqual({ payoutId: 'p', ...PAID, symbol: 'USD', gatewayId: 'h' });
});

it('adding holds a payout back until its time', async () => {
  const at = (ms: number) => new Date(clock.wallNow() + ms).toISOString();
  const [later, past] = [source('later', { notBefore: at(3_600_000) }), source('now', { notBefore: at(-1) })];
  await queues.addWithdrawJobs([later, past]);
  const delayed = await queues.withdraw.getDelayed();
  expect(delayed.map((job) => [job.id, job.opts.delay])).toEqual([['later~0', 3_600_000]]);
  expect(idsOf(await queues.withdraw.getWaiting())).toEqual(['now~0']);
});

it('adding gives each payout one poll after the delay, also several at once', async () => {
  const add = async (delayMs: number, ...jobs: JobSource[]) => queues.addStatusJobs(jobs, delayMs);
  await add(5_000, source('p', { gatewayId: 'h' }));
  await add(1, source('p', { gatewayId: 'h' }));
  await add(5_000, source('q'), source('r', { requeueCount: 1 }));
  const jobs = await queues.transactionstatus.getDelayed();
  expect(idsOf(jobs)).toEqual(['p~0', 'q~0', 'r~1']);
  expect(jobs.map((job) => job.opts.delay)).toEqual([5_000, 5_000, 5_000]);
  expect((await queues.transactionstatus.getJob('p~0'))?.data.gatewayId).toBe('h');
});

const key = (name: string) => queues.withdraw.toKey(name);
const waiting = async () => redis.lrange(key('wait'), 0, -1);
const { signal } = new AbortController();

/** Enqueues payouts with their jobs, the first of them nearest to its turn, and cancels them in the ledger alone. */
async function cancelled(...payoutIds: string[]) {
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
}

/** Adds jobs of which nothing is known: only their number counts. */
async function fill(count: number) {
  for (let start = 0; start < count; start += 5_000) {
    const some = names(Math.min(5_000, count - start), `head${start}-`);
    await redis.lpush(key('wait'), ...some);
  }
}

const left = async () => (await waiting()).filter((jobId) => !jobId.startsWith('head'));

describe('removing the jobs of cancelled payouts', () => {
  it('finds them at both ends of a long list, not far from both, and keeps the order', async () => {
    const reach = 500;
    await cancelled('next-1', 'next-2');
    await rig.enqueue(['stays-1']);
    await fill(reach + 200);
    await cancelled('far');
    await fill(reach + 200);
    await rig.enqueue(['stays-2']);
    await cancelled('new');
    expect(await removeCancelledJobs(connection, queues.withdraw, signal, reach)).toBe(3);
    expect(await left()).toEqual(['stays-2~0', 'far~0', 'stays-1~0']);
    expect(await redis.exists(key('new~0'), key('next-1~0'), key('far~0'))).toBe(1);
  });

  it('looks from the tail as far as it finds some, and no further', async () => {
    await cancelled('c-1');
    await fill(600);
    await cancelled('c-2');
    await fill(3_000);
    await cancelled('far');
    expect(await removeNextCancelledJobs(connection, queues.withdraw, signal)).toBe(2);
    expect(await left()).toEqual(['far~0']);
  });

  it.each([removeCancelledJobs, removeNextCancelledJobs])(
    'leaves a job that a worker holds (%p)',
    async (removeJobs) => {
      await cancelled('held', 'c');
      await redis.set(key('held~0:lock'), 'worker');
      expect(await removeJobs(connection, queues.withdraw, signal)).toBe(1);
      expect(await left()).toEqual(['held~0']);
    },
  );
});

it('removing the job of one payout takes that of its requeue count out, unless it stands behind too many others', async () => {
  await queues.addWithdrawJobs([source('p'), source('p', { requeueCount: 1 }), source('far')]);
  for (const payoutId of ['p', 'nobody']) await queues.removeWithdrawJob(source(payoutId));
  expect(await left()).toEqual(['far~0', 'p~1']);
  await fill(LIST_REACH + 5);
  await rig.enqueue(['new']);
  for (const payoutId of ['far', 'new']) await queues.removeWithdrawJob({ payoutId });
  expect(await left()).toEqual(['far~0', 'p~1']);
});

it.each<[string, object]>([
  ['delayed', { notBefore: '2099-01-01T00:00:00Z' }],
  ['prioritized', { priority: 3 }],
])('removing the job of one payout takes a %s one out beside a long list', async (structure, more) => {
  await fill(LIST_REACH + 5);
  await queues.addWithdrawJobs([source('p', more)]);
  expect(await redis.zcard(key(structure))).toBe(1);
  await queues.removeWithdrawJob({ payoutId: 'p' });
  expect(await redis.zcard(key(structure))).toBe(0);
});

it('the scripts touch only keys that they declare, since a slot of a cluster may be moving', async () => {
  const { withdraw } = queues;
  await rig.enqueue(['well', 'placeless', 'hashless', aPayout('urgent', { priority: 1 })]);
  await redis.lrem(withdraw.toKey('wait'), 0, 'placeless~0');
  await redis.del(withdraw.toKey('hashless~0'), withdraw.toKey('urgent~0'));
  for (const name of readdirSync('src/queues').filter((each) => each.endsWith('.lua'))) {
    const lua = watchedScript(readFileSync(`src/queues/${name}`, 'utf8'));
    redis.defineCommand(`payouts:${name.replace('.lua', '')}`, { lua });
  }
  expect(await rig.reconciler.reconcile('queued', new AbortController().signal)).toBe(3);
  await queues.repairTimes(withdraw, { limiterMs: 1, stalledCheckMs: 1, lockMs: 1, longestDelayMs: 1 });
});

it('the map of many jobs holds what a Map holds, whatever the texts', () => {
  const entries = fc.array(fc.tuple(fc.string({ maxLength: 12 }), fc.constantFrom('a', 'b', 'c')), { maxLength: 60 });
  fc.assert(
    fc.property(entries, fc.array(fc.string({ maxLength: 12 })), (pairs, others) => {
      const [map, compact] = [new Map(pairs), new CompactMap<string>()];
      for (const [text, value] of pairs) compact.set(text, value);
      expect(compact.size).toBe(map.size);
      for (const text of [...map.keys(), ...others]) expect(compact.get(text)).toBe(map.get(text));
    }),
    { numRuns: 2_000 },
  );
});

it('the map of many jobs distinguishes texts that share half of their hash', () => {
  // The first half is FNV-1a, of which these are known to collide.
  const compact = new CompactMap<string>();
  compact.set('costarring', 'a');
  compact.set('declinate', 'b');
  expect(['liquid', 'macallums', 'costarring'].map((text) => compact.get(text))).toEqual([undefined, undefined, 'a']);
});
