// BullMQ: https://docs.bullmq.io/guide/rate-limiting. With care: one job at a time over all workers
// (https://docs.bullmq.io/guide/queues/global-concurrency), a second of rest within the job, and a job whose worker ended
// fails instead of a second run (`maxStalledCount`, https://docs.bullmq.io/guide/jobs/stalled).
import { setTimeout as delay } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const QUEUE = 'payouts';
const INTERVAL_MS = 1_000;

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
  const care = careful ? { maxStalledCount: 0 } : {};
  const worker = new Worker(
    QUEUE,
    async ({ data }) => {
      try {
        await withdraw(data);
      } finally {
        if (careful) await delay(INTERVAL_MS);
      }
    },
    { connection: connect({ url }), limiter: { max: 1, duration: INTERVAL_MS }, ...care },
  );
  worker.on('error', () => undefined);
  await worker.waitUntilReady();
  return async () => worker.close();
}
