import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { LocalRedis } from '../../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { until } from '../../support/until.js';
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from './worker-process.js';

/** An account of its own with a Redis, a gateway, a producer and a journal folder. */
export interface PayoutWorld {
  readonly platformId: number;
  readonly redisUrl: string;
  readonly sandbox: Sandbox;
  readonly producer: PayoutProducer;
  readonly dir: string;
  startWorker(options?: Partial<WorkerProcessOptions>): WorkerProcess;
  /** Enqueues P-1 … P-n, each to an address of its own. */
  enqueue(count: number, prefix?: string): Promise<string[]>;
  /** Ends the workers too. */
  close(): Promise<void>;
}

export const SECRET_KEY = 'k-test-0123456789';
let nextPlatformId = 100_000 + Math.floor(Math.random() * 1_000_000_000);

export interface PayoutWorldOptions {
  /** A Redis of one's own; without it the tests' common one serves, under a platformId of its own. */
  readonly redis?: Pick<LocalRedis, 'url'>;
  readonly sandbox?: Partial<Omit<Parameters<typeof startSandbox>[0], 'accounts'>> & { readonly balance?: string };
}

export async function openWorld({
  redis,
  sandbox: { balance, ...sandboxOptions } = {},
}: PayoutWorldOptions = {}): Promise<PayoutWorld> {
  const platformId = (nextPlatformId += 1);
  const redisUrl = redis?.url ?? process.env['REDIS_URL'] ?? '';
  const dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
  const sandbox = await startSandbox({
    accounts: [{ platformId, secretKey: SECRET_KEY, balance }],
    settleAfterMs: 300,
    ...sandboxOptions,
  });
  const producer = new PayoutProducer({ redisUrl, platformId });
  const workers: WorkerProcess[] = [];
  return {
    platformId,
    redisUrl,
    sandbox,
    producer,
    dir,
    startWorker(options = {}) {
      const worker = startWorkerProcess({
        redisUrl,
        platformId,
        baseUrl: sandbox.url,
        secretKey: SECRET_KEY,
        journalDir: join(dir, 'journal'),
        ...options,
      });
      workers.push(worker);
      return worker;
    },
    async enqueue(count, prefix = 'P') {
      const payoutIds = Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
      await producer.enqueueMany(
        payoutIds.map((payoutId, index) => ({
          payoutId,
          paymentId: 1,
          amount: '0.01',
          addressTo: `wallet-${prefix.toLowerCase()}${index + 1}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
        })),
      );
      return payoutIds;
    },
    async close() {
      await Promise.all(workers.map(async (worker) => worker.end()));
      await producer.close();
      await sandbox.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function untilSent({ sandbox }: PayoutWorld, count: number): Promise<void> {
  await until(`${count} payouts arrived`, () => sandbox.stats().arrivals >= count);
}

/** Waits until this many payouts are completed or unknown. */
export async function untilSettled({ producer }: PayoutWorld, count: number): Promise<void> {
  await until(`${count} payouts are settled`, async () => isSettled(producer, count));
}

/** The same where Redis may be unavailable meanwhile. */
export async function untilSettledAfterOutage({ producer }: PayoutWorld, count: number): Promise<void> {
  await until(`${count} payouts are settled`, async () => isSettled(producer, count).catch(() => false));
}

async function isSettled(producer: PayoutProducer, count: number): Promise<boolean> {
  const { completed, unknown } = await producer.stats();
  return completed + unknown === count;
}

/** The promises, as the gateway and the ledger see them. */
export async function expectPromisesKept(world: PayoutWorld): Promise<void> {
  const { smallestGapMs, duplicatePayments, blocked } = world.sandbox.stats();
  expect({ blocked, duplicatePayments }).toEqual({ blocked: false, duplicatePayments: [] });
  if (smallestGapMs !== null) expect(smallestGapMs).toBeGreaterThanOrEqual(1000);
  const { queued, sending } = await world.producer.stats();
  expect({ queued, sending }).toEqual({ queued: 0, sending: 0 });
}
