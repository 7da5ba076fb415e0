import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { StateWithJob } from '../../src/ledger/states.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import { aPayout } from '../ledger/support/a-payout.js';
import type { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { rig, useRig } from './support/queue-rig.js';

useRig();

let withdraw: Queue;
let status: Queue;
beforeEach(() => {
  ({ withdraw, transactionstatus: status } = rig.queues);
});

const check = async (state: StateWithJob): Promise<number> =>
  rig.reconciler.reconcile(state, new AbortController().signal);
const lose = async (structure: string) => rig.account.redis.del(withdraw.toKey(structure));

const IN_AN_HOUR = '2030-01-01T01:00:00Z';

/** One queued payout for each structure in which its job can wait. */
async function enqueueOneOfEach(): Promise<void> {
  await rig.enqueue([
    'plain',
    aPayout('urgent', { priority: 3 }),
    aPayout('later', { notBefore: IN_AN_HOUR }),
    aPayout('both', { priority: 4, notBefore: IN_AN_HOUR }),
  ]);
}

const HEALTHY = ['delayed both~0', 'delayed later~0', 'prioritized urgent~0', 'wait plain~0'];

describe('reconcile leaves alone', () => {
  it('payouts that have their job', async () => {
    await enqueueOneOfEach();
    await rig.enqueue(['moving']);
    await rig.accept('moving');
    const written = async () => rig.account.redis.xlen(withdraw.toKey('events'));
    const before = await written();
    expect([await check('queued'), await check('in_progress')]).toEqual([0, 0]);
    expect([await rig.places(withdraw), await rig.places(status)]).toEqual([HEALTHY, ['delayed moving~0']]);
    expect(await written()).toBe(before);
  });

  it('an account without payouts', async () => {
    expect([await check('queued'), await check('in_progress')]).toEqual([0, 0]);
  });

  it('a job that a worker runs, also where its hash is gone', async () => {
    const { redis } = rig.account;
    await rig.enqueue(['running', 'hashless']);
    await redis.del(withdraw.toKey('wait'), withdraw.toKey('hashless~0'));
    await redis.lpush(withdraw.toKey('active'), 'running~0', 'hashless~0');
    for (const jobId of ['running~0', 'hashless~0']) await redis.set(withdraw.toKey(`${jobId}:lock`), 'token');
    expect(await check('queued')).toBe(0);
    expect(await rig.places(withdraw)).toEqual(['active hashless~0', 'active running~0']);
  });

  it('a job whose worker died, which BullMQ runs again by itself', async () => {
    await rig.enqueue(['stalled']);
    await rig.account.redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('active'));
    expect(await check('queued')).toBe(0);
    expect(await rig.places(withdraw)).toEqual(['active stalled~0']);
  });

  it('the job of a payout that an operator has put back since: that one has another', async () => {
    const { ledger } = rig.account;
    await rig.enqueue(['p']);
    await ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    await ledger.change({ payoutId: 'p', from: 'sending', to: 'rejected' });
    await ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued' });
    await rig.relay.relayOutbox(rig.account.clock.wallNow() + 1);
    await rig.account.redis.lrem(withdraw.toKey('wait'), 0, 'p~1');
    expect(await check('queued')).toBe(1);
    expect(await rig.places(withdraw)).toEqual(['wait p~0', 'wait p~1']);
  });
});

describe('reconcile re-creates', () => {
  it.each(['wait', 'prioritized', 'delayed', 'the whole queue'])('what stood in %s', async (structure) => {
    await enqueueOneOfEach();
    const keys = structure === 'the whole queue' ? ['wait', 'prioritized', 'delayed'] : [structure];
    if (keys.length > 1) await withdraw.obliterate({ force: true });
    else await lose(structure);
    const lost = HEALTHY.filter((place) => keys.some((name) => place.startsWith(`${name} `))).length;
    expect(await check('queued')).toBe(lost);
    expect(await rig.places(withdraw)).toEqual(HEALTHY);
    const [urgent, later, both] = await Promise.all(
      ['urgent~0', 'later~0', 'both~0'].map(async (id) => withdraw.getJob(id)),
    );
    expect([urgent?.opts.priority, both?.opts.priority]).toEqual([3, 4]);
    expect([later?.opts.delay, both?.opts.delay]).toEqual([3_600_000, 3_600_000]);
    expect(await check('queued')).toBe(0);
  });

  it('jobs whose hashes are gone, and leaves no second place', async () => {
    await enqueueOneOfEach();
    await rig.account.redis.del(...['plain~0', 'urgent~0', 'later~0'].map((jobId) => withdraw.toKey(jobId)));
    expect(await check('queued')).toBe(3);
    expect(await rig.places(withdraw)).toEqual(HEALTHY);
    expect(await withdraw.getJob('plain~0')).toMatchObject({ data: { payoutId: 'plain' } });
    expect(await check('queued')).toBe(0);
  });

  it('jobs of which BullMQ has made a part of a hash', async () => {
    const { redis } = rig.account;
    await rig.enqueue(['p', 'q']);
    await redis.del(withdraw.toKey('p~0'), withdraw.toKey('q~0'));
    await redis.hset(withdraw.toKey('p~0'), 'stc', '1');
    await redis.hset(withdraw.toKey('q~0'), { processedOn: '1', ats: '1' });
    await redis.lrem(withdraw.toKey('wait'), 0, 'q~0');
    expect(await check('queued')).toBe(2);
    expect(await rig.places(withdraw)).toEqual(['wait p~0', 'wait q~0']);
    expect(await withdraw.getJob('q~0')).toMatchObject({ data: { payoutId: 'q' } });
  });

  it('a job that ended without its payout having moved on', async () => {
    const { redis } = rig.account;
    await rig.enqueue(['p']);
    // As BullMQ leaves a job behind that stalled too often.
    await redis.hset(withdraw.toKey('p~0'), 'finishedOn', String(Date.now()));
    await redis.lrem(withdraw.toKey('wait'), 0, 'p~0');
    await redis.zadd(withdraw.toKey('failed'), Date.now(), 'p~0');
    expect(await check('queued')).toBe(1);
    expect(await rig.places(withdraw)).toEqual(['wait p~0']);
    expect(await withdraw.getFailedCount()).toBe(0);
  });

  it('polls', async () => {
    await rig.enqueue(['p', 'q']);
    await rig.accept('p');
    await rig.accept('q');
    await rig.account.redis.del(status.toKey('delayed'));
    expect(await check('in_progress')).toBe(2);
    expect(await rig.places(status)).toEqual(['delayed p~0', 'delayed q~0']);
    expect((await status.getJob('p~0'))?.opts.delay).toBe(5_000);
  });

  it('the place of a job that a worker runs, among the active ones', async () => {
    const { redis } = rig.account;
    await rig.enqueue(['running']);
    await lose('wait');
    await redis.set(withdraw.toKey('running~0:lock'), 'token', 'PX', 6_000);
    expect(await check('queued')).toBe(1);
    expect(await rig.places(withdraw)).toEqual(['active running~0']);
    expect(await check('queued')).toBe(0);
  });
});

describe('reconcile, and what happens meanwhile', () => {
  it('gives those their jobs first that the outbox names, whatever date it gives them, and does not count them', async () => {
    rig.account.clock.advance(3_600_000);
    await rig.account.ledger.enqueue([aPayout('of-the-future')]);
    rig.account.clock.advance(-3_600_000);
    expect(await check('queued')).toBe(0);
    expect(await rig.places(withdraw)).toEqual(['wait of-the-future~0']);
  });

  it('leaves payouts to the process that is adding their jobs', async () => {
    const { account, queues, relay } = rig;
    await rig.enqueue(['there']);
    const interrupted = Object.assign(Object.create(relay) as OutboxRelay, {
      // Accepted just behind the step that empties the outbox.
      relayOutbox: async () => {
        await account.ledger.enqueue([aPayout('fresh')]);
        return 0;
      },
      addJobs: relay.addJobs.bind(relay),
    });
    const reconciler = new JobReconciler(account.ledger, { queues, relay: interrupted });
    expect(await reconciler.reconcile('queued', new AbortController().signal)).toBe(0);
    expect(await rig.places(withdraw)).toEqual(['wait there~0']);
  });

  it('re-creates the others where a payout cannot be read, and reports it', async () => {
    const { redis, connection } = rig.account;
    await rig.enqueue(['broken', 'sound']);
    await redis.hset(connection.keys.payout('broken'), 'metadata', '{');
    await lose('wait');
    expect(await check('queued')).toBe(1);
    expect(await rig.places(withdraw)).toEqual(['wait sound~0']);
    expect(rig.errors).toMatchObject([[{ payoutId: 'broken' }, expect.stringContaining('not re-created')]]);
  });

  it('ends between two pages when it is told to', async () => {
    await rig.enqueue(Array.from({ length: 120 }, (_, index) => `p${index}`));
    await lose('wait');
    expect(await rig.reconciler.reconcile('queued', AbortSignal.abort())).toBe(0);
    expect(await rig.places(withdraw)).toEqual([]);
  });
});

it('reconcile in a long queue finds the jobs that lost their place or hash, keeps the order, and adds nothing twice', async () => {
  const { redis } = rig.account;
  const names = Array.from({ length: 5_200 }, (_, index) => `p${index}`);
  const order = async () => (await redis.lrange(withdraw.toKey('wait'), 0, -1)).reverse();
  await rig.enqueue(names);
  for (const index of [0, 2_600, 5_198]) {
    await redis.lrem(withdraw.toKey('wait'), 0, `p${index}~0`);
    await redis.del(withdraw.toKey(`p${index + 1}~0`));
    expect(await check('queued')).toBe(2);
  }
  expect((await order()).sort()).toEqual(names.map((name) => `${name}~0`).sort());
  await lose('wait');
  expect(await check('queued')).toBe(names.length);
  // BullMQ takes from the tail.
  expect(await order()).toEqual(names.map((name) => `${name}~0`));
  expect(await check('queued')).toBe(0);
});
