import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { silentLogger, silentLogger as logger } from '../../src/base/logger.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import { LIMITER_MS, STALLED_JOBS } from '../../src/worker/job-worker.js';
import { type ClockReading, ClockStepDetector } from '../../src/worker/redis-clocks.js';
import { repairClockJump, repairClockJumps } from '../../src/worker/repair-clock-jump.js';
import { LostJobAlarm, restoreLostJobs } from '../../src/worker/restore-lost-jobs.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { longestPollDelayMs } from '../../src/worker/status-jobs.js';
import { ManualClock } from '../doubles/manual-clock.js';
import type { QueueRig } from '../queues/support/queue-rig.js';
import { until } from '../support/until.js';
import { afterTest } from './support/close-after-test.js';
import { fastClock, internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';

let rig: QueueRig;
beforeEach(() => {
  rig = queuesOfTest();
});

/** BullMQ looks for jobs that wait without a marker only after twenty seconds. */
const AT_ONCE_MS = 3_000;

it('takes every job that is due, as many as may run together, and asks once for each', async () => {
  const jobs = new JobRig();
  const asked = jest.spyOn(internals, 'moveToActive');
  const payoutIds = Array.from({ length: 60 }, (_, index) => `p${index}`);
  jobs.held = new Set(payoutIds);
  await jobs.rig.enqueue(payoutIds);
  jobs.start({ concurrency: 20 });
  await until('as many as may run together run', () => jobs.running.size === 20, AT_ONCE_MS);
  expect(asked.mock.calls.length).toBeLessThan(25);
  jobs.held.delete('p0');
  await until('the next runs', () => jobs.running.has('p20'), AT_ONCE_MS);
});

it('polls a payout until it is final, also after errors', async () => {
  let polls = 0;
  const jobs = startPolls(rig, { pollMinMs: 10, pollMaxMs: 40, pollRate: 200 }, async () => {
    polls += 1;
    if (polls <= 8) throw new GatewayUnavailableError('The gateway is down');
    return Promise.resolve({ kind: 'pending' });
  });
  await rig.enqueue(['p']);
  await rig.accept('p');
  await until('it was polled often', () => polls >= 16);
  await jobs.close();
  const job = await rig.queues.transactionstatus.getJob('p~0');
  expect(await job?.getState()).toBe('delayed');
  expect(job?.delay).toBeGreaterThan(0);
  expect(job?.delay).toBeLessThanOrEqual(longestPollDelayMs(40));
});

it("no poll asks about another gateway's transaction, and each is made up for once the ledger is bound again", async () => {
  const asked: string[] = [];
  const { ledger } = rig.account;
  startPolls(rig, { pollMinMs: 10, pollMaxMs: 40, pollRate: 200 }, async (gatewayId) => {
    asked.push(gatewayId);
    return Promise.resolve({ kind: 'paid' });
  });
  await ledger.bind('https://other.example#1', { by: 'ann', reason: 'a trial' });
  await rig.enqueue(['p']);
  await rig.accept('p');
  await until('several polls were tried', async () => {
    const job = await rig.queues.transactionstatus.getJob('p~0');
    return (job?.attemptsStarted ?? 0) >= 5;
  });
  expect([asked, (await ledger.get('p'))?.state]).toEqual([[], 'in_progress']);
  await ledger.bind('test', { by: 'ann', reason: 'back' });
  await until('it is final', async () => (await ledger.get('p'))?.state === 'completed');
  expect(asked).toHaveLength(1);
});

/** A look every 0.1 s, and an hour of 18 s. */
const QUICK = 200;

async function restore() {
  const recreated: [state: string, count: number][] = [];
  const [warnings, checks]: [string[], string[]] = [[], []];
  await rig.enqueue(['p', 'q']);
  await rig.accept('q');
  const stop = new AbortController();
  const start = (speed = QUICK) => {
    const observer = { ...noObserver, jobsRecreated: (...args: [string, number]) => void recreated.push(args) };
    const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
    const reconcile: typeof rig.reconciler.reconcile = async (state, signal) => {
      const count = await rig.reconciler.reconcile(state, signal);
      checks.push(state);
      return count;
    };
    const { account, queues } = rig;
    const runtime = { clock: fastClock(speed), ledger: account.ledger, queues, observer, logger };
    const watching = restoreLostJobs(runtime, { reconcile }, stop.signal);
    afterTest(async () => {
      stop.abort();
      await watching;
    });
  };
  const untilChecked = async () => until('the first checks are over', () => checks.length >= 2);
  const untilRepaired = async (count = 1) => until('repaired', () => recreated.length === count);
  const wait = rig.queues.withdraw.toKey('wait');
  return { redis: rig.account.redis, wait, start, untilChecked, untilRepaired, warnings, recreated, checks };
}

it('lost jobs are added again at the start, and told; what is well is left alone', async () => {
  const { redis, wait, start, untilRepaired, recreated, warnings, checks } = await restore();
  await redis.del(wait, rig.queues.transactionstatus.toKey('delayed'));
  start();
  await untilRepaired(2);
  expect(Object.fromEntries(recreated)).toEqual({ in_progress: 1, queued: 1 });
  expect(warnings).toEqual(Array(2).fill('re-created missing jobs'));
  expect(await rig.places(rig.queues.withdraw)).toEqual(['wait p~0']);
  // Ten looks.
  await delay(1_000);
  expect(checks).toHaveLength(2);
});

it('a job that was delayed by hand, and one that cannot be read, are repaired although none is lost', async () => {
  const { redis, wait, start, untilChecked, untilRepaired, recreated } = await restore();
  const { withdraw, transactionstatus } = rig.queues;
  start();
  await untilChecked();
  await redis.lrem(wait, 0, 'p~0');
  await redis.zadd(withdraw.toKey('delayed'), (rig.account.clock.wallNow() + 3_600_000) * 0x1000, 'p~0');
  await untilRepaired();
  await redis.zrem(transactionstatus.toKey('delayed'), 'q~0');
  await redis.lpush(transactionstatus.toKey('active'), 'q~0');
  await redis.hset(transactionstatus.toKey('q~0'), 'data', 'no JSON');
  await untilRepaired(2);
  expect(recreated).toEqual([
    ['queued', 1],
    ['in_progress', 1],
  ]);
});

it('lost jobs later are found by the counts alone, and that state only is checked', async () => {
  const { redis, wait, start, untilChecked, untilRepaired, recreated, checks } = await restore();
  start();
  await untilChecked();
  await redis.lrem(wait, 0, 'p~0');
  await untilRepaired();
  expect([recreated, checks.slice(2)]).toEqual([[['queued', 1]], ['queued']]);
});

it('lost jobs are found within an hour, also where the counts fit', async () => {
  const { redis, start, untilChecked, untilRepaired, recreated } = await restore();
  start(10 * QUICK);
  await untilChecked();
  await redis.del(rig.queues.withdraw.toKey('p~0'));
  await untilRepaired();
  expect(recreated).toEqual([['queued', 1]]);
});

it('lost jobs are found also after an error, of one state as of the other', async () => {
  const { redis, wait, start, untilRepaired, warnings, checks } = await restore();
  // No list: what reads it fails.
  await redis.rename(wait, `${wait}-elsewhere`);
  await redis.set(wait, 'nonsense');
  start();
  await until('it has failed', () => warnings.some((text) => text.includes('failed')));
  await until('the other state was checked', () => checks.includes('in_progress'));
  await redis.del(wait);
  await untilRepaired();
});

it.each<[string, readonly (number | readonly [recreated: number, lost: number])[], string]>([
  ['at two looks in a row', [3, 0, 5, 0, 1, 1], '.....!'],
  ['until an exact check was made', [2, 2, 2, [2, 0], 0, 2, 2], '.!! ..!'],
  [
    'but not for what a check found nothing behind',
    [4, 3, [0, 3], 3, 3, 4, 4, [1, 3], 3, 3, [0, 3], 1, 2, 2],
    '.! ...! .! ..!',
  ],
  ['for one more', [[0, -5], -5, -4, -4, [1, -5], -5, -5, -6, -4, -4, [0, -4], -4, -4], ' ..! ....! ..'],
  ['for damage that comes during a check', [[0, 7], 7, 7], ' .!'],
])('lost jobs are an alarm %s', (_, looks, alarms) => {
  const alarm = new LostJobAlarm();
  const found = looks.map((look) => {
    if (typeof look === 'number') return alarm.isDue(look) ? '!' : '.';
    alarm.noteCheck(...look);
    return ' ';
  });
  expect(found.join('')).toBe(alarms);
});

const HOUR_MS = 3_600_000;
const POLL_MAX_MS = 10_000;

describe('the queues are looked at', () => {
  let clock: ManualClock;
  let redisOffset: number;
  let isSender: boolean;
  let repairs: number[];

  beforeEach(() => {
    clock = new ManualClock();
    redisOffset = 0;
    isSender = false;
    repairs = [];
    const stop = new AbortController();
    const startedAt = clock.now();
    const queues = Object.assign(Object.create(rig.queues) as typeof rig.queues, {
      repairTimes: async (queue: unknown) => {
        if (queue === rig.queues.withdraw) repairs.push(clock.now() - startedAt);
        return Promise.resolve(0);
      },
    });
    const readRedisClock = (): ClockReading => ({ low: redisOffset, high: redisOffset + 5 });
    const running = repairClockJumps(
      { clock, queues, logger },
      { longestPollDelayMs: POLL_MAX_MS, readRedisClock, isSender: () => isSender },
      stop.signal,
    );
    afterTest(async () => {
      stop.abort();
      await running;
    });
  });

  it('not at all while no clock is put back, in a process that stands by', async () => {
    await clock.advance(10 * 60_000);
    clock.wallOffsetMs += HOUR_MS;
    redisOffset = HOUR_MS;
    await clock.advance(10 * 60_000);
    expect(repairs).toEqual([]);
  });

  it.each([
    ['of the machine', () => (clock.wallOffsetMs -= 1_000)],
    ['of Redis', () => (redisOffset = -1_000)],
  ])('within a second after the clock %s was put back, and twice more', async (_, putBack) => {
    await clock.advance(20_500);
    putBack();
    await clock.advance(600_000);
    expect(repairs).toEqual([21_000, 22_000, 23_000]);
  });

  it('at a takeover, and once a minute while the lease is held', async () => {
    await clock.advance(4_500);
    isSender = true;
    await clock.advance(130_000);
    expect(repairs).toEqual([5_000, 65_000, 125_000]);
    isSender = false;
    await clock.advance(100_000);
    expect(repairs).toHaveLength(3);
    isSender = true;
    await clock.advance(1_000);
    expect(repairs).toHaveLength(4);
  });
});

const repair = async () => repairClockJump({ queues: rig.queues, logger }, 1.1 * POLL_MAX_MS);
const delayedOf = (name: 'withdraw' | 'transactionstatus') => rig.queues[name].toKey('delayed');
const delayJob = async (key: string, jobId: string, ms: number) =>
  rig.account.redis.zadd(key, (rig.account.clock.wallNow() + ms) * 0x1000 + 5, jobId);
const dueInMs = async (key: string, jobId: string) =>
  Math.floor(Number(await rig.account.redis.zscore(key, jobId)) / 0x1000) - rig.account.clock.wallNow();

it('the repair shortens what would expire too late in both queues', async () => {
  const { redis } = rig.account;
  for (const queue of [rig.queues.withdraw, rig.queues.transactionstatus]) {
    await redis.lpush(queue.toKey('active'), 'P');
    const longest = {
      limiter: LIMITER_MS,
      'stalled-check': STALLED_JOBS.stalledInterval,
      'P:lock': STALLED_JOBS.lockDuration,
    };
    // Like keys whose Redis was put back by an hour right after they were set.
    for (const key of Object.keys(longest)) await redis.set(queue.toKey(key), '1', 'PX', HOUR_MS);
    await repair();
    for (const [key, ms] of Object.entries(longest)) {
      const left = await redis.pttl(queue.toKey(key));
      expect(left).toBeLessThanOrEqual(ms);
      expect(left).toBeGreaterThan(0);
    }
  }
});

it('the repair makes only a poll due that is delayed for too long, and no `notBefore`', async () => {
  const [polls, sends] = [delayedOf('transactionstatus'), delayedOf('withdraw')];
  await delayJob(polls, 'late~0', HOUR_MS);
  await delayJob(polls, 'soon~0', POLL_MAX_MS);
  await delayJob(sends, 'P~0', HOUR_MS);
  await repair();
  expect([await dueInMs(polls, 'late~0'), await dueInMs(polls, 'soon~0')]).toEqual([0, POLL_MAX_MS]);
  expect(await dueInMs(sends, 'P~0')).toBe(HOUR_MS);
});

it.each<[string, readonly (number | ClockReading)[], readonly number[]]>([
  ['a step of a second, each time, and none forward', [0, 3_600_000, -1_000, -2_000, -2_000], [2, 3]],
  ['none of the steps by which a clock is kept right', [0, -50, 20, -100], []],
  ['no slow reply of Redis', [0, { low: -5_000, high: 0 }, { low: 0, high: 4_000 }, 0], []],
  ['a step that a slow reply has hidden', [0, { low: -2_500, high: 500 }, -1_000], [2]],
])('what a step of the clock of Redis is: %s', (_, readings, steps) => {
  const detector = new ClockStepDetector();
  const found = readings.flatMap((reading, index) => {
    const exact = typeof reading === 'number' ? { low: reading, high: reading } : reading;
    return detector.note(exact) ? [index] : [];
  });
  expect(found).toEqual(steps);
});
