import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { StateWithJob } from '../../src/ledger/states.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { aPayout, clock, connection, keys, ledger, names, redis } from '../ledger/support/use-account.js';
import { makeInProgress, queues, rig, useRig } from './support/queue-rig.js';
import { countDuePayouts, type JobBalance, readJobBalance } from '../../src/queues/job-balance.js';
import { systemClock } from '../../src/base/clock.js';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import type { PayoutQueues } from '../../src/queues/payout-queues.js';

useRig();

let withdraw: Queue;
let status: Queue;
beforeEach(() => {
  ({ withdraw, transactionstatus: status } = queues);
});

const key = (name: string) => withdraw.toKey(name);
const check = async (state: StateWithJob = 'queued') => rig.reconciler.reconcile(state, new AbortController().signal);
const losePlace = async (jobId: string) => redis.lrem(key('wait'), 0, jobId);
/** @param jobIds - of jobs that lost their hash, or structures of the queue */
const lose = async (...jobIds: string[]) => redis.del(...jobIds.map(key));

const IN_AN_HOUR = '2030-01-01T01:00:00Z';
const HEALTHY = ['delayed both~0', 'delayed later~0', 'prioritized urgent~0', 'wait plain~0'];

const enqueueOneOfEach = async () =>
  rig.enqueue([
    'plain',
    aPayout('urgent', { priority: 3 }),
    aPayout('later', { notBefore: IN_AN_HOUR }),
    aPayout('both', { priority: 4, notBefore: IN_AN_HOUR }),
  ]);

/** Sees how many jobs a check re-creates, and that it leaves these places. */
async function expectCheck(recreated: number, ...places: string[]) {
  expect([await check(), await rig.places(withdraw)]).toEqual([recreated, places]);
}

it('reconcile leaves alone an account without payouts, and payouts that have their job', async () => {
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

it('reconcile leaves alone a job that a worker runs, also without its hash, or whose worker died: BullMQ runs it again', async () => {
  await rig.enqueue(['running', 'hashless', 'stalled']);
  await lose('wait', 'hashless~0');
  await redis.lpush(key('active'), 'running~0', 'hashless~0', 'stalled~0');
  for (const jobId of ['running~0', 'hashless~0']) await redis.set(key(`${jobId}:lock`), 'token');
  await expectCheck(0, 'active hashless~0', 'active running~0', 'active stalled~0');
});

it.each([['wait'], ['prioritized'], ['delayed'], ['wait', 'prioritized', 'delayed']])(
  'reconcile re-creates what stood in %s',
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

it('reconcile re-creates jobs of whose hashes nothing, or a part, is left, in one place each', async () => {
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

it('reconcile re-creates a job that ended without its payout having moved on', async () => {
  await rig.enqueue(['p']);
  // As BullMQ leaves a job behind that stalled too often.
  await redis.hset(key('p~0'), 'finishedOn', String(Date.now()));
  await losePlace('p~0');
  await redis.zadd(key('failed'), Date.now(), 'p~0');
  await expectCheck(1, 'wait p~0');
  expect(await withdraw.getFailedCount()).toBe(0);
});

it('reconcile re-creates the place of a job that a worker runs, among the active ones', async () => {
  await rig.enqueue(['running']);
  await lose('wait');
  await redis.set(key('running~0:lock'), 'token', 'PX', 6_000);
  await expectCheck(1, 'active running~0');
  expect(await check()).toBe(0);
});

describe('reconcile, and what happens meanwhile', () => {
  it('gives those their jobs first that the outbox names, of whatever date, and does not count them', async () => {
    clock.advance(3_600_000);
    await ledger.enqueue([aPayout('of-the-future')]);
    clock.advance(-3_600_000);
    await expectCheck(0, 'wait of-the-future~0');
  });

  it('leaves payouts to the process that is adding their jobs', async () => {
    await rig.enqueue(['there']);
    const interrupted = Object.assign(Object.create(rig.relay) as OutboxRelay, {
      // Accepted just behind the step that empties the outbox.
      relayOutbox: async () => {
        await ledger.enqueue([aPayout('fresh')]);
        return 0;
      },
      addJobs: rig.relay.addJobs.bind(rig.relay),
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
});

it('reconcile in a long queue finds what lost its place or hash, and keeps the order', async () => {
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

it('counts jobs in every structure, also of a payout that is being sent', async () => {
  const later = aPayout('d', { notBefore: '2031-01-01T00:00:00Z' });
  await rig.enqueue(['a', 'b', aPayout('c', { priority: 1 }), later, 'e']);
  await rig.accept('e');
  await redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('active'));
  await redis.rpoplpush(withdraw.toKey('wait'), withdraw.toKey('paused'));
  // Its job still runs; not counted, it would hide a job that is lost.
  await ledger.change({ payoutId: 'a', from: 'queued', to: 'sending' });
  expect(await balance('queued')).toEqual({ payouts: 4, jobs: 4, outboxed: 0, lost: 0 });
  expect(await balance('in_progress')).toEqual({ payouts: 1, jobs: 1, outboxed: 0, lost: 0 });
});

it('counts what a long outbox does not show for every state, but no strange members', async () => {
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
  const count = async () => countDuePayouts(connection);
  const notBefore = new Date(clock.wallNow() + 2_000).toISOString();
  await rig.enqueue(['now', aPayout('urgent', { priority: 3 }), aPayout('later', { notBefore })]);
  expect(await count()).toBe(2);
  clock.advance(1_999);
  expect(await count()).toBe(2);
  clock.advance(2);
  expect(await count()).toBe(3);
});

const withdrawJobs = async () => (await withdraw.getWaiting()).map((job) => job.id).sort();
const statusJobs = async () => (await status.getDelayed()).map((job) => job.id);
const relay = async (signal?: AbortSignal) => rig.relay.relayOutbox(clock.wallNow() + 1, signal);
const outbox = async () => redis.zrange(keys.outbox, '0', '-1');
const setField = async (payoutId: string, field: string, value: string) =>
  redis.hset(keys.payout(payoutId), field, value);
const accept = async (...payoutIds: string[]) => ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
const queuesWith = (own: object) => Object.assign(Object.create(queues) as PayoutQueues, own);
const GONE = new RedisUnavailableError('Redis is gone');

async function relayToTheEnd() {
  const signal = AbortSignal.timeout(30_000);
  const relayed = await relay(signal);
  expect(signal.aborted).toBe(false);
  return relayed;
}

it('relayOutbox adds the jobs that a crash left out, none for a payout that has moved on', async () => {
  await accept('p', 'q', 'gone');
  await makeInProgress(rig, 'q');
  await ledger.change({ payoutId: 'gone', from: 'queued', to: 'cancelled' });
  expect([await relay(), await relay()]).toEqual([4, 0]);
  expect([await withdrawJobs(), await statusJobs()]).toEqual([['p~0'], ['q~0']]);
});

it('relayOutbox goes through more than one page, and ends between two when it is told to', async () => {
  await accept(...names(600));
  expect(await relay(AbortSignal.abort())).toBe(250);
  expect(await relay()).toBe(350);
  expect(await withdraw.count()).toBe(600);
});

it('relayOutbox reports once a notBefore that someone has altered, and adds the jobs of all', async () => {
  await accept('p', 'strange');
  await setField('strange', 'notBefore', 'now');
  expect(await relay()).toBe(2);
  expect(await withdrawJobs()).toEqual(['p~0', 'strange~0']);
  await rig.relay.deliver('queued', ['strange']);
  expect(rig.errors).toEqual([[{ payoutId: 'strange', notBefore: 'now' }, expect.stringContaining('is no time')]]);
});

it('relayOutbox leaves members that make no sense to it, reports each once, and delivers the others', async () => {
  const strange = ['refunding p-1', 'queued', 'queued ', 'queued  p', 'queued p q', ' queued p', '', '%s %d'];
  for (const member of strange) await redis.zadd(keys.outbox, 1, member);
  await accept('p');
  expect([await relay(), await relay()]).toEqual([1, 0]);
  expect(await withdrawJobs()).toEqual(['p~0']);
  expect((await outbox()).sort()).toEqual(strange.sort());
  expect(rig.errors).toMatchObject([[{ count: strange.length }, expect.anything()]]);
});

it.each([
  ['that are no payouts', 1_200, (index: number) => `refunding p${index}`],
  // Decoded, they look like payouts, but what is sent back to Redis is another member than the one that is there.
  ['that no text can name', 600, (index: number) => Buffer.from([...Buffer.from(`queued p${index}-`), 0xff])],
])('relayOutbox finds the others behind more than a page of members %s', async (_, count, member) => {
  const members = Array.from({ length: count }, (__, index) => [1, member(index)]);
  await redis.zadd(keys.outbox, ...members.flat());
  await accept('p');
  expect(await relayToTheEnd()).toBe(1);
  expect(await withdrawJobs()).toEqual(['p~0']);
  expect(await outbox()).toHaveLength(count);
});

it.each([
  ['metadata', '{', '"repaired"'],
  ['state', 'refunding', 'queued'],
])(
  'relayOutbox delivers the others, keeps one that cannot be read and reports it once: %s',
  async (field, broken, repaired) => {
    await accept('broken', 'sound');
    await setField('broken', field, broken);
    expect([await relay(), await relay()]).toEqual([1, 0]);
    expect([await withdrawJobs(), await outbox()]).toEqual([['sound~0'], ['queued broken']]);
    expect(rig.errors).toEqual([
      [{ payoutId: 'broken', error: expect.stringContaining('payout broken') }, expect.stringContaining('no job')],
    ]);
    await setField('broken', field, repaired);
    expect(await relay()).toBe(1);
    expect(await withdrawJobs()).toEqual(['broken~0', 'sound~0']);
  },
);

it('deliver adds a job in the place of one that is finished, or of which only a part is left', async () => {
  await rig.enqueue(['finished']);
  await redis.lmove(key('wait'), key('active'), 'RIGHT', 'LEFT');
  await (await withdraw.getJob('finished~0'))?.moveToFailed(new Error('on purpose'), '0');
  expect(await withdraw.getFailedCount()).toBe(1);
  await accept('part');
  // As BullMQ leaves it where it promotes a delayed job that has no hash.
  await redis.hset(key('part~0'), 'delay', '0');
  expect(await rig.relay.deliver('queued', ['finished', 'part', 'nobody'])).toEqual({ added: 2, unreadable: 0 });
  expect(await withdrawJobs()).toEqual(['finished~0', 'part~0']);
  expect(await withdraw.getFailedCount()).toBe(0);
  expect(await rig.relay.deliver('queued', ['finished', 'part'])).toEqual({ added: 0, unreadable: 0 });
});

it('tryDeliverSent adds the poll job of a payout; the outbox keeps it where that failed', async () => {
  await accept('p', 'q');
  await relay();
  for (const payoutId of ['p', 'q']) await makeInProgress(rig, payoutId);
  await rig.relay.tryDeliverSent('p');
  expect(await statusJobs()).toEqual(['p~0']);
  const failing = queuesWith({ addStatusJobs: async () => Promise.reject(GONE) });
  await new OutboxRelay(ledger, failing).tryDeliverSent('q');
  expect(await statusJobs()).toEqual(['p~0']);
  expect(await relay()).toBe(1);
  expect(await statusJobs()).toHaveLength(2);
});

it('tryDeliver takes payouts that are new out of the outbox, and leaves the others to the worker', async () => {
  const [fresh, waiting] = [aPayout('fresh'), aPayout('waiting')];
  await ledger.enqueue([fresh, waiting]);
  expect(await rig.relay.tryAddAccepted([fresh, waiting])).toBe(true);
  await rig.relay.tryClearAccepted([fresh]);
  expect(await withdrawJobs()).toEqual(['fresh~0', 'waiting~0']);
  expect(await outbox()).toEqual(['queued waiting']);
});

it('tryDeliver waits 5 s at most for a queue that hangs: logs it, and the outbox keeps the payout', async () => {
  const sleeps: number[] = [];
  const warnings: object[] = [];
  const sleep = async (ms: number, signal?: AbortSignal) => {
    sleeps.push(ms);
    // The entries of the outbox have to be read first, from a real Redis.
    return systemClock.sleep(200, signal);
  };
  const failing = queuesWith({ addWithdrawJobs: async () => new Promise(() => undefined) });
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const slow = new PayoutLedger({ ...connection, clock: { ...systemClock, sleep } });
  const hanging = new OutboxRelay(slow, failing, { logger });
  await accept('p-1');
  await hanging.tryDeliver('queued', ['p-1']);
  expect(await hanging.tryAddAccepted([aPayout('p-1')])).toBe(false);
  const reason = 'Redis did not respond within 5000 ms';
  expect(warnings).toEqual(Array(2).fill({ payoutId: 'p-1', payouts: 1, reason }));
  expect(sleeps).toEqual([5_000, 5_000]);
  expect(await outbox()).toEqual(['queued p-1']);
});
