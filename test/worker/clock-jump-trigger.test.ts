import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import type { ClockReading } from '../../src/worker/redis-clocks.js';
import { repairClockJumps } from '../../src/worker/repair-clock-jump.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { ManualClock } from '../doubles/manual-clock.js';

const HOUR_MS = 3_600_000;

let rig: QueueRig;
let clock: ManualClock;
let redisOffset: number | undefined;
let isSender: boolean;
let isAway: boolean;
/** When the queues were looked at, in ms since the start. */
let repairs: number[];
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  rig = openQueueRig();
  clock = new ManualClock();
  redisOffset = 0;
  isSender = isAway = false;
  repairs = [];
  stop = new AbortController();
  const startedAt = clock.now();
  const queues = Object.assign(Object.create(rig.queues) as typeof rig.queues, {
    repairTimes: async (queue: unknown) => {
      if (queue === rig.queues.withdraw) repairs.push(clock.now() - startedAt);
      return isAway ? Promise.reject(new RedisUnavailableError('away')) : Promise.resolve(0);
    },
  });
  running = repairClockJumps(
    { clock, queues, logger: silentLogger },
    {
      longestPollDelayMs: 10_000,
      readRedisClock: (): ClockReading | undefined =>
        redisOffset === undefined ? undefined : { low: redisOffset, high: redisOffset + 5 },
      isSender: () => isSender,
    },
    stop.signal,
  );
});
afterEach(async () => {
  stop.abort();
  await running;
  await rig.close();
});

describe('the queues are looked at', () => {
  it('not at all while no clock is put back, in a process that stands by', async () => {
    await clock.advance(10 * 60_000);
    clock.wallOffsetMs += HOUR_MS;
    redisOffset = HOUR_MS;
    await clock.advance(10 * 60_000);
    expect(repairs).toEqual([]);
  });

  it.each([
    ['of the machine', () => (clock.wallOffsetMs -= HOUR_MS)],
    ['of the machine, by a second', () => (clock.wallOffsetMs -= 1_000)],
    ['of Redis', () => (redisOffset = -HOUR_MS)],
    ['of Redis, by a second', () => (redisOffset = -1_000)],
  ])('within a second after the clock %s was put back, and twice more', async (_, putBack) => {
    await clock.advance(20_500);
    putBack();
    await clock.advance(600_000);
    expect(repairs).toEqual([21_000, 22_000, 23_000]);
  });

  it('once the clock of Redis was put back while it could not be read', async () => {
    await clock.advance(2_500);
    redisOffset = undefined;
    await clock.advance(60_000);
    redisOffset = -HOUR_MS;
    await clock.advance(10_000);
    expect(repairs).toEqual([63_000, 64_000, 65_000]);
  });

  it('again and again until Redis is there', async () => {
    await clock.advance(1_500);
    isAway = true;
    clock.wallOffsetMs -= HOUR_MS;
    await clock.advance(10_000);
    isAway = false;
    await clock.advance(20_000);
    expect(repairs).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((second) => second * 1_000));
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
