import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import type { Logger } from '../../../src/base/logger.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import type { AccountOptions } from '../../../src/worker/payout-worker.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';

/** A worker in this process with its health server, a gateway and a producer. */
export interface WatchedWorker {
  readonly platformId: number;
  readonly worker: PayoutWorker;
  readonly sandbox: Sandbox;
  readonly producer: PayoutProducer;
  readonly url: string;
  readonly enqueue: (payoutId: string, addressTo?: string) => Promise<void>;
  /** The value of a metric of the account, read over HTTP; undefined when there is no such series. */
  readonly metric: (name: string, labels?: Readonly<Record<string, string>>) => Promise<number | undefined>;
}

export interface WatchedWorkerOptions {
  readonly redisUrl?: string;
  readonly stuckAfterMs?: number;
  readonly allowVolatileRedis?: boolean;
  readonly account?: Partial<AccountOptions>;
  readonly sandbox?: Partial<SandboxOptions>;
  readonly logger?: Logger;
  /** Called with the journal folder and the account before the worker starts. */
  readonly prepare?: (journalDir: string, platformId: number) => Promise<void>;
}

export const WATCHED_SECRET_KEY = 'k-watched-0123456789';

interface Closable {
  close(): Promise<void>;
}

const open: Closable[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Closes it when the test has ended, the last first. */
export function closeAfterTest<Thing extends Closable>(thing: Thing): Thing {
  open.push(thing);
  return thing;
}

export function randomPlatformId(): number {
  return 100_000 + Math.floor(Math.random() * 1_000_000_000);
}

/** A worker that ends with the test. */
export async function startWatchedWorker(options: WatchedWorkerOptions = {}): Promise<WatchedWorker> {
  const { redisUrl = process.env['REDIS_URL'] ?? '', stuckAfterMs, allowVolatileRedis = false } = options;
  const platformId = randomPlatformId();
  const journalDir = await mkdtemp(join(tmpdir(), 'payouts-health-'));
  await options.prepare?.(journalDir, platformId);
  const sandbox = await startSandbox({
    accounts: [{ platformId, secretKey: WATCHED_SECRET_KEY }],
    settleAfterMs: 300,
    ...options.sandbox,
  });
  const metrics = createWorkerMetrics({
    version: '1.2.3',
    ...(stuckAfterMs === undefined ? {} : { stuckAfterMs }),
  });
  const worker = await createPayoutWorker({
    redisUrl,
    allowVolatileRedis,
    journalDir,
    observe: metrics.observe,
    ...(options.logger === undefined ? {} : { logger: options.logger }),
    accounts: [
      {
        platformId,
        baseUrl: sandbox.url,
        secretKey: WATCHED_SECRET_KEY,
        leaseMs: 1_000,
        quarantineMs: 1_000,
        inFlightMaxMs: 100,
        pollMinMs: 200,
        pollMaxMs: 500,
        ...options.account,
      },
    ],
  });
  const health = await startHealthServer({ host: '127.0.0.1', port: 0, metrics, accounts: () => worker.accounts });
  const producer = new PayoutProducer({ redisUrl, platformId });
  return closeAfterTest<WatchedWorker & Closable>({
    platformId,
    worker,
    sandbox,
    producer,
    url: health.url,
    async enqueue(payoutId, addressTo = `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxx`) {
      await producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo });
    },
    async metric(name, labels = {}) {
      const text = await (await fetch(`${health.url}/metrics`)).text();
      return readMetric(text, name, { platform_id: String(platformId), ...labels });
    },
    async close() {
      await health.close();
      await producer.close();
      await worker.stop();
      await sandbox.close();
      await rm(journalDir, { recursive: true, force: true });
    },
  });
}

/** The value of the one series with these labels and no others. */
export function readMetric(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .sort()
    .join(',');
  for (const line of text.split('\n')) {
    const [, found, foundLabels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (found === name && foundLabels.split(',').sort().join(',') === wanted) return Number(value);
  }
  return undefined;
}
