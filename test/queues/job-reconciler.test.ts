import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { StateWithJob } from '../../src/ledger/states.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import type { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { clock, connection, keys, ledger, names, redis } from '../ledger/support/use-account.js';
import { queues, rig, useRig } from './support/queue-rig.js';
import { countDuePayouts, readJobBalance, type JobBalance } from '../../src/queues/job-balance.js';

useRig();

let withdraw: Queue;
let status: Queue;
beforeEach(() => {
  ({ withdraw, transactionstatus: status } = queues);
});

const key = (name: string): string => withdraw.toKey(name);
const check = async (state: StateWithJob = 'queued', signal = new AbortController().signal) =>
  rig.reconciler.reconcile(state, signal);
const losePlace = async (jobId: string) => redis.lrem(key('wait'), 0, jobId);
/** @param jobIds - of jobs that lost their hash, or structures of the queue */
const lose = async (...jobIds: string[]) => redis.del(...jobIds.map(key));

const IN_AN_HOUR = '2030-01-01T01:00:00Z';
const HEALTHY = ['delayed both~0', 'delayed later~0', 'prioritized urgent~0', 'wait plain~0'];

/** One queued payout for each structure in which its job can wait. */
const enqueueOneOfEach = async () =>
  rig.enqueue([
    'plain',
    aPayout('urgent', { priority: 3 }),
    aPayout('later', { notBefore: IN_AN_HOUR }),
    aPayout('both', { priority: 4, notBefore: IN_AN_HOUR }),
  ]);

/** Sees how many jobs a check re-creates, and that it leaves these places. */
async function expectCheck(recreated: number, ...places: string[]): Promise<void> {
  expect([await check(), await rig.places(withdraw)]).toEqual([recreated, places]);
}

describe('reconcile leaves alone', () => {
  it('an account without payouts, and payouts that have their job', async () => {
    expect([await check(), await check('in_progress')]).toEqual([0, 0]);
    await enqueueOneOfEach();
    await rig.enqueue(['moving']);
    await rig.accept('moving');
    const written = async () => redis.xlen(key('events'));
    const before = await written();
    await expectCheck(0, ...HEALTHY);
    expect([await check('in_progress'), await rig.places(status)]).toEqual([0, ['delayed moving~0']]);
    expect(await written()).toBe(before);
  });

  it('a job that a worker runs, also where its hash is gone, and one whose worker died: BullMQ runs it again', async () => {
    await rig.enqueue(['running', 'hashless', 'stalled']);
    await lose('wait', 'hashless~0');
    await redis.lpush(key('active'), 'running~0', 'hashless~0', 'stalled~0');
    for (const jobId of ['running~0', 'hashless~0']) await redis.set(key(`${jobId}:lock`), 'token');
    await expectCheck(0, 'active hashless~0', 'active running~0', 'active stalled~0');
  });
});

describe('reconcile re-creates', () => {
  it.each([['wait'], ['prioritized'], ['delayed'], ['wait', 'prioritized', 'delayed']])(
    'what stood in %s',
    async (...structures: string[]) => {
      await enqueueOneOfEach();
      if (structures.length > 1) await withdraw.obliterate({ force: true });
      else await lose(...structures);
      const lost = HEALTHY.filter((place) => structures.some((name) => place.startsWith(`${name} `))).length;
      await expectCheck(lost, ...HEALTHY);
      const jobs = await Promise.all(['urgent~0', 'later~0', 'both~0'].map(async (id) => withdraw.getJob(id)));
      expect(jobs.map((job) => [job?.opts.priority ?? 0, job?.opts.delay ?? 0])).toEqual([
        [3, 0],
        [0, 3_600_000],
        [4, 3_600_000],
      ]);
      expect(await check()).toBe(0);
    },
  );

  it('jobs whose hashes are gone, or of which BullMQ has made a part, and leaves no second place', async () => {
    await enqueueOneOfEach();
    await rig.enqueue(['p', 'q']);
    await lose('plain~0', 'urgent~0', 'later~0', 'p~0', 'q~0');
    await redis.hset(key('p~0'), 'stc', '1');
    await redis.hset(key('q~0'), { processedOn: '1', ats: '1' });
    await losePlace('q~0');
    await expectCheck(5, ...HEALTHY.slice(0, 3), 'wait plain~0', 'wait p~0', 'wait q~0');
    for (const payoutId of ['plain', 'q']) {
      expect(await withdraw.getJob(`${payoutId}~0`)).toMatchObject({ data: { payoutId } });
    }
    expect(await check()).toBe(0);
  });

  it('a job that ended without its payout having moved on', async () => {
    await rig.enqueue(['p']);
    // As BullMQ leaves a job behind that stalled too often.
    await redis.hset(key('p~0'), 'finishedOn', String(Date.now()));
    await losePlace('p~0');
    await redis.zadd(key('failed'), Date.now(), 'p~0');
    await expectCheck(1, 'wait p~0');
    expect(await withdraw.getFailedCount()).toBe(0);
  });

  it('polls', async () => {
    await rig.enqueue(['p', 'q']);
    for (const payoutId of ['p', 'q']) await rig.accept(payoutId);
    await redis.del(status.toKey('delayed'));
    expect(await check('in_progress')).toBe(2);
    expect(await rig.places(status)).toEqual(['delayed p~0', 'delayed q~0']);
    expect((await status.getJob('p~0'))?.opts.delay).toBe(5_000);
  });

  it('the place of a job that a worker runs, among the active ones', async () => {
    await rig.enqueue(['running']);
    await lose('wait');
    await redis.set(key('running~0:lock'), 'token', 'PX', 6_000);
    await expectCheck(1, 'active running~0');
    expect(await check()).toBe(0);
  });
});

describe('reconcile, and what happens meanwhile', () => {
  it('gives those their jobs first that the outbox names, whatever date it gives them, and does not count them', async () => {
    clock.advance(3_600_000);
    await ledger.enqueue([aPayout('of-the-future')]);
    clock.advance(-3_600_000);
    await expectCheck(0, 'wait of-the-future~0');
  });

  it('leaves payouts to the process that is adding their jobs', async () => {
    const { relay } = rig;
    await rig.enqueue(['there']);
    const interrupted = Object.assign(Object.create(relay) as OutboxRelay, {
      // Accepted just behind the step that empties the outbox.
      relayOutbox: async () => {
        await ledger.enqueue([aPayout('fresh')]);
        return 0;
      },
      addJobs: relay.addJobs.bind(relay),
    });
    const reconciler = new JobReconciler(ledger, { queues, relay: interrupted });
    expect(await reconciler.reconcile('queued', new AbortController().signal)).toBe(0);
    expect(await rig.places(withdraw)).toEqual(['wait there~0']);
  });

  it('re-creates the others where a payout cannot be read, and reports it', async () => {
    await rig.enqueue(['broken', 'sound']);
    await redis.hset(keys.payout('broken'), 'metadata', '{');
    await lose('wait');
    await expectCheck(1, 'wait sound~0');
    expect(rig.errors).toMatchObject([[{ payoutId: 'broken' }, expect.stringContaining('not re-created')]]);
  });

  it('ends between two pages when it is told to', async () => {
    await rig.enqueue(names(120));
    await lose('wait');
    expect(await check('queued', AbortSignal.abort())).toBe(0);
    expect(await rig.places(withdraw)).toEqual([]);
  });
});

it('reconcile in a long queue finds what lost its place or hash, keeps the order, and adds nothing twice', async () => {
  const jobIds = names(5_200).map((name) => `${name}~0`);
  // BullMQ takes from the tail.
  const order = async () => (await redis.lrange(key('wait'), 0, -1)).reverse();
  await rig.enqueue(names(5_200));
  for (const index of [0, 2_600, 5_198]) {
    await losePlace(`p${index}~0`);
    await lose(`p${index + 1}~0`);
    expect(await check()).toBe(2);
  }
  expect((await order()).sort()).toEqual(jobIds.toSorted());
  await lose('wait');
  expect(await check()).toBe(jobIds.length);
  expect(await order()).toEqual(jobIds);
  expect(await check()).toBe(0);
});

const balance = async (state: StateWithJob): Promise<JobBalance> => readJobBalance(connection, queues, state);

it('counts jobs in every structure, also of a payout that is being sent, for the payouts of its state', async () => {
  const later = aPayout('d', { notBefore: '2031-01-01T00:00:00Z' });
  await rig.enqueue(['a', 'b', aPayout('c', { priority: 1 }), later, 'e']);
  await rig.accept('e');
  const { withdraw, transactionstatus } = queues;
  await redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('active'));
  await redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('paused'));
  // Its job still runs; not counted, it would hide a job that is lost.
  await ledger.change({ payoutId: 'a', from: 'queued', to: 'sending' });
  expect(await balance('queued')).toEqual({ payouts: 4, jobs: 4, outboxed: 0, lost: 0 });
  expect(await balance('in_progress')).toEqual({ payouts: 1, jobs: 1, outboxed: 0, lost: 0 });
  for (const structure of ['active', 'paused', 'prioritized', 'delayed']) {
    await redis.del(withdraw.toKey(structure));
  }
  await redis.del(transactionstatus.toKey('delayed'));
  expect([(await balance('queued')).lost, (await balance('in_progress')).lost]).toEqual([4, 1]);
});

it('expects no job yet of payouts that the outbox names, of their own state only', async () => {
  await ledger.enqueue([aPayout('p'), aPayout('q')]);
  await redis.zadd(keys.outbox, 1, 'refunding p', 1, 'in_progress', 1, 'in_progress other');
  expect(await balance('queued')).toEqual({ payouts: 2, jobs: 0, outboxed: 2, lost: 0 });
  expect(await balance('in_progress')).toEqual({ payouts: 0, jobs: 0, outboxed: 1, lost: -1 });
});

it('counts what a long outbox does not show for every state, but takes no strange members for payouts', async () => {
  await ledger.enqueue(names(1_200).map((payoutId) => aPayout(payoutId)));
  expect(await balance('queued')).toMatchObject({ payouts: 1_200, outboxed: 1_200, lost: 0 });
  expect((await balance('in_progress')).outboxed).toBe(200);
  // They would hide lost jobs.
  const strange = names(2_500).map((name) => [1, `refunding ${name}`]);
  await redis.del(keys.outbox);
  await redis.zadd(keys.outbox, ...strange.flat());
  expect(await balance('queued')).toEqual({ payouts: 1_200, jobs: 0, outboxed: 0, lost: 1_200 });
});

it('counts queued payouts but for those whose notBefore is in the future', async () => {
  const count = async (): Promise<number> => countDuePayouts(connection, queues);
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
