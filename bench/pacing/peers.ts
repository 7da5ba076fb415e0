import { Queue, Worker } from 'bullmq';
import Bottleneck from 'bottleneck';
import PQueue from 'p-queue';
import pThrottle from 'p-throttle';
import { RateLimiterMemory, RateLimiterQueue } from 'rate-limiter-flexible';
import type { SamplePayout } from '../sample-payouts.js';

type Send = (payout: SamplePayout) => Promise<void>;
type Peer = (
  payouts: readonly SamplePayout[],
  send: Send,
  redis: { readonly host: string; readonly port: number },
) => Promise<void>;

/**
 * One withdrawal a second, as each library's own documentation says. `send` makes the call and resolves with its response.
 * Each takes `(payouts, send, redis)` and resolves when all are sent.
 */
export const PEERS: Readonly<Record<string, Peer>> = {
  'BullMQ limiter': async (payouts, send, { host, port }) => {
    const connection = { host, port, maxRetriesPerRequest: null };
    const queue = new Queue('peer', { connection });
    await queue.addBulk(payouts.map((payout) => ({ name: 'withdraw', data: payout })));
    let left = payouts.length;
    await new Promise<void>((resolve) => {
      const worker = new Worker<SamplePayout>(
        'peer',
        async ({ data }) => {
          await send(data);
          left -= 1;
          if (left === 0) setImmediate(() => void worker.close().then(resolve));
        },
        { connection, limiter: { max: 1, duration: 1_000 } },
      );
    });
    await queue.close();
  },

  bottleneck: async (payouts, send) => {
    const limiter = new Bottleneck({ maxConcurrent: 1, minTime: 1_000 });
    await Promise.all(payouts.map(async (payout) => limiter.schedule(async () => send(payout))));
  },

  'p-throttle': async (payouts, send) => {
    const throttled = pThrottle({ limit: 1, interval: 1_000 })(send);
    await Promise.all(payouts.map(async (payout) => throttled(payout)));
  },

  'p-queue': async (payouts, send) => {
    const queue = new PQueue({ concurrency: 1, interval: 1_000, intervalCap: 1 });
    await Promise.all(payouts.map(async (payout) => queue.add(async () => send(payout))));
  },

  'rate-limiter-flexible': async (payouts, send) => {
    const limiter = new RateLimiterQueue(new RateLimiterMemory({ points: 1, duration: 1 }));
    for (const payout of payouts) {
      await limiter.removeTokens(1);
      await send(payout);
    }
  },
};
