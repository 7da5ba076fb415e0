// BullMQ: https://docs.bullmq.io/guide/rate-limiting. With care: one job at a time over all workers
// (https://docs.bullmq.io/guide/queues/global-concurrency), rest within the job, a job whose worker ended fails instead of
// a second run (`maxStalledCount`, https://docs.bullmq.io/guide/jobs/stalled), and a job that lost its lock is aborted
// (https://docs.bullmq.io/guide/workers/cancelling-jobs).
import { setTimeout as delay } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { INTERVAL_MS, restAfter, startDeadline } from './care.mjs';

const QUEUE = 'payouts';

const connect = ({ url }) => ({ url, maxRetriesPerRequest: null });

export async function openClient({ url, careful }) {
  const queue = new Queue(QUEUE, { connection: connect({ url }) });
  queue.on('error', () => undefined);
  const redis = new Redis(url);
  redis.on('error', () => undefined);
  return {
    async enqueue(payouts) {
      if (careful) await queue.setGlobalConcurrency(1);
      await queue.addBulk(payouts.map((data) => ({ name: 'withdraw', data, opts: { jobId: data.payoutId } })));
    },
    async look(payoutIds) {
      const states = await Promise.all(
        payoutIds.map(async (payoutId) => [payoutId, await queue.getJobState(payoutId)]),
      );
      return new Map(states.map(([payoutId, state]) => [payoutId, STATES[state] ?? 'waits']));
    },
    /** What anyone who can write to this Redis can do. */
    async forge({ payoutId, ...payment }, addressTo) {
      await redis.hset(queue.toKey(payoutId), 'data', JSON.stringify({ payoutId, ...payment, addressTo }));
    },
    async close() {
      redis.disconnect();
      await queue.close();
    },
  };
}

const STATES = { completed: 'done', failed: 'asks', unknown: 'missing' };

export async function work({ url, careful }, withdraw) {
  const worker = new Worker(
    QUEUE,
    careful
      ? async ({ data }, _token, signal) => payThenRest(withdraw, data, signal)
      : async ({ data }) => withdraw(data),
    {
      connection: connect({ url }),
      limiter: { max: 1, duration: INTERVAL_MS },
      ...(careful && { maxStalledCount: 0 }),
    },
  );
  worker.on('error', () => undefined);
  worker.on('lockRenewalFailed', (jobIds) => jobIds.forEach((jobId) => worker.cancelJob(jobId, 'its lock is lost')));
  await worker.waitUntilReady();
  return async () => worker.close();
}

/** The rest of a job whose worker ended is the time until BullMQ misses it. */
async function payThenRest(withdraw, payout, signal) {
  let failure;
  try {
    return await withdraw(payout, startDeadline(signal));
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await delay(restAfter(failure));
  }
}
