import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { silentLogger as logger } from '../../src/base/logger.js';
import { LIMITER_MS, STALLED_JOBS } from '../../src/worker/job-worker.js';
import { ClockStepDetector, type ClockReading } from '../../src/worker/redis-clocks.js';
import { repairClockJump, repairClockJumps } from '../../src/worker/repair-clock-jump.js';
import { ManualClock } from '../doubles/manual-clock.js';
import type { QueueRig } from '../queues/support/queue-rig.js';
import { afterTest } from './support/close-after-test.js';
import { queuesOfTest } from './support/job-rig.js';

const HOUR_MS = 3_600_000;
const POLL_MAX_MS = 10_000;

let rig: QueueRig;
beforeEach(() => {
  rig = queuesOfTest();
});

describe('the queues are looked at', () => {
  let clock: ManualClock;
  let redisOffset: number | undefined;
  let isSender: boolean;
  let isAway: boolean;
  /** When they were, in ms since the start. */
  let repairs: number[];

  beforeEach(() => {
    clock = new ManualClock();
    redisOffset = 0;
    isSender = isAway = false;
    repairs = [];
    const stop = new AbortController();
    const startedAt = clock.now();
    const queues = Object.assign(Object.create(rig.queues) as typeof rig.queues, {
      repairTimes: async (queue: unknown) => {
        if (queue === rig.queues.withdraw) repairs.push(clock.now() - startedAt);
        return isAway ? Promise.reject(new RedisUnavailableError('away')) : Promise.resolve(0);
      },
    });
    const readRedisClock = (): ClockReading | undefined =>
      redisOffset === undefined ? undefined : { low: redisOffset, high: redisOffset + 5 };
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

  it('once the clock of Redis was put back while it could not be read', async () => {
    redisOffset = undefined;
    await clock.advance(60_500);
    redisOffset = -HOUR_MS;
    await clock.advance(10_000);
    expect(repairs).toEqual([61_000, 62_000, 63_000]);
  });

  it('again and again until Redis is there', async () => {
    await clock.advance(1_500);
    isAway = true;
    clock.wallOffsetMs -= HOUR_MS;
    await clock.advance(10_000);
    isAway = false;
    await clock.advance(20_000);
    expect(repairs).toEqual(Array.from({ length: 13 }, (_, index) => (index + 2) * 1_000));
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

describe('the repair', () => {
  const repair = async (): Promise<void> => repairClockJump({ queues: rig.queues, logger }, 1.1 * POLL_MAX_MS);
  const delayedOf = (name: 'withdraw' | 'transactionstatus'): string => rig.queues[name].toKey('delayed');
  /** Delays a job until then, by the account's clock. */
  const delay = async (key: string, jobId: string, ms: number): Promise<unknown> =>
    rig.account.redis.zadd(key, (rig.account.clock.wallNow() + ms) * 0x1000 + 5, jobId);
  const dueInMs = async (key: string, jobId: string): Promise<number> =>
    Math.floor(Number(await rig.account.redis.zscore(key, jobId)) / 0x1000) - rig.account.clock.wallNow();

  it('shortens what would expire too late in both queues', async () => {
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

  it('makes a poll due that is delayed for too long, and leaves the others, and the `notBefore` of a payout', async () => {
    const [polls, sends] = [delayedOf('transactionstatus'), delayedOf('withdraw')];
    await delay(polls, 'late~0', HOUR_MS);
    await delay(polls, 'soon~0', POLL_MAX_MS);
    await delay(sends, 'P~0', HOUR_MS);
    await repair();
    expect([await dueInMs(polls, 'late~0'), await dueInMs(polls, 'soon~0')]).toEqual([0, POLL_MAX_MS]);
    expect(await dueInMs(sends, 'P~0')).toBe(HOUR_MS);
  });
});

it.each<[string, readonly (number | ClockReading)[], readonly number[]]>([
  ['a clock that is put back, once, and not one that is put forward', [0, 3_600_000, 3_600_000, 0, 0], [3]],
  ['a step of a second, each time', [0, -1_000, -2_000], [1, 2]],
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
