import type { Queue } from 'bullmq';
import { pipelined } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';

/** The lifetimes of BullMQ's keys in a queue, in ms. */
export interface QueueTimes {
  readonly limiterMs: number;
  readonly stalledCheckMs: number;
  readonly lockMs: number;
  /** The longest delay of a job. Without it, the delays are dates that a person chose. */
  readonly longestDelayMs?: number;
}

interface ExpiringKey {
  readonly key: string;
  readonly maxMs: number;
}

/** BullMQ's scores: the date in the high bits, and twelve more bits for jobs of the same millisecond. */
const SCORES_PER_MS = 0x1000;
const JOBS_PER_LOOK = 1_000;

/** The lowest score of a delayed job for a date, in ms. */
export function delayedScore(at: number): number {
  return at * SCORES_PER_MS;
}

/**
 * Shortens times that are further ahead than they were ever set, see `PayoutQueues.repairTimes`. One round trip if no
 * job is active and no clock was put back.
 * @param now - wall clock, ms
 */
export async function shortenTimes(redis: RedisClient, queue: Queue, times: QueueTimes, now: number): Promise<number> {
  const { limiterMs, stalledCheckMs, lockMs, longestDelayMs } = times;
  const timers = [
    { key: queue.toKey('limiter'), maxMs: limiterMs },
    { key: queue.toKey('stalled-check'), maxMs: stalledCheckMs },
  ];
  const replies = await pipelined({ redis }, (pipeline) => {
    for (const { key } of timers) pipeline.pttl(key);
    pipeline.lrange(queue.toKey('active'), 0, -1);
    if (longestDelayMs === undefined) return;
    const latest = delayedScore(now + longestDelayMs + 1);
    pipeline.zrange(queue.toKey('delayed'), latest, '+inf', 'BYSCORE', 'LIMIT', 0, JOBS_PER_LOOK);
  });
  const [limiterLeftMs, checkLeftMs, active, lateJobs = []] = replies as [number, number, string[], string[]?];
  const locks = active.map((jobId) => ({ key: queue.toKey(`${jobId}:lock`), maxMs: lockMs }));
  const long = [
    ...timers.filter(({ maxMs }, index) => (index === 0 ? limiterLeftMs : checkLeftMs) > maxMs),
    ...(await findLong(redis, locks)),
  ];
  if (long.length + lateJobs.length > 0) {
    await pipelined({ redis }, (pipeline) => {
      for (const { key, maxMs } of long) pipeline.pexpire(key, maxMs);
      // A job that is no longer delayed must not be added there again.
      for (const jobId of lateJobs) pipeline.zadd(queue.toKey('delayed'), 'XX', delayedScore(now), jobId);
    });
  }
  return long.length + lateJobs.length;
}

async function findLong(redis: RedisClient, keys: readonly ExpiringKey[]): Promise<ExpiringKey[]> {
  if (keys.length === 0) return [];
  const leftMs = (await pipelined({ redis }, (pipeline) => {
    for (const { key } of keys) pipeline.pttl(key);
  })) as number[];
  return keys.filter(({ maxMs }, index) => (leftMs[index] ?? 0) > maxMs);
}
