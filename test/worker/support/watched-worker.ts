import type { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { PayoutWorker, PayoutWorkerOptions } from '../../../src/control/payout-worker.js';
import type { Sandbox } from '../../../src/sandbox/index.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import type { AccountOptions } from '../../../src/worker/payout-worker.js';
import { closeAfterTest } from './close-after-test.js';
import { openWorkerIn, worldOfTest, type PayoutWorldOptions } from './payout-world.js';

export { closeAfterTest };
export { SECRET_KEY as WATCHED_SECRET_KEY } from './payout-world.js';

/** A worker in this process with its health server, a gateway and a producer. */
export interface WatchedWorker {
  readonly platformId: number;
  readonly worker: PayoutWorker;
  readonly sandbox: Sandbox;
  readonly producer: PayoutProducer;
  readonly url: string;
  readonly enqueue: (payoutId: string, addressTo?: string) => Promise<void>;
  /** The value of a metric of the account, read over HTTP; undefined when there is no such series. */
  readonly metric: (name: string, labels?: Labels) => Promise<number | undefined>;
  /** What `/readyz` responds. */
  readonly readyz: () => Promise<[status: number, body: unknown]>;
}

type Labels = Readonly<Record<string, string>>;

export interface WatchedWorkerOptions extends Pick<PayoutWorldOptions, 'redis' | 'sandbox'> {
  readonly stuckAfterMs?: number;
  readonly worker?: Partial<PayoutWorkerOptions>;
  readonly account?: Partial<AccountOptions>;
  /** Called with the journal folder and the account before the worker starts. */
  readonly prepare?: (journalDir: string, platformId: number) => Promise<unknown>;
}

/** Short times, so that a lease is there within two seconds. */
export const QUICK_ACCOUNT = {
  leaseMs: 1_000,
  quarantineMs: 1_000,
  inFlightMaxMs: 100,
  pollMinMs: 200,
  pollMaxMs: 500,
};

export function randomPlatformId(): number {
  return 100_000 + Math.floor(Math.random() * 1_000_000_000);
}

/** @returns the status and the body of the response */
export async function ask(url: string, init: RequestInit = {}): Promise<[status: number, body: unknown]> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(5_000) });
  return [response.status, await response.json()];
}

/** A worker that ends with the test. */
export async function startWatchedWorker(options: WatchedWorkerOptions = {}): Promise<WatchedWorker> {
  const { stuckAfterMs, worker: given, account, prepare, ...worldOptions } = options;
  const world = await worldOfTest(worldOptions);
  const { platformId, sandbox, producer, env } = world;
  await prepare?.(env.SEND_JOURNAL_DIR, platformId);
  const metrics = createWorkerMetrics({ version: '1.2.3', ...(stuckAfterMs && { stuckAfterMs }) });
  const worker = await openWorkerIn(world, { observe: metrics.observe, ...given }, { ...QUICK_ACCOUNT, ...account });
  const { url } = closeAfterTest(
    await startHealthServer({ host: '127.0.0.1', port: 0, metrics, accounts: () => worker.accounts }),
  );
  return {
    ...{ platformId, worker, sandbox, producer, url },
    async enqueue(payoutId, addressTo = `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxx`) {
      await producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo });
    },
    async metric(name, labels = {}) {
      const text = await (await fetch(`${url}/metrics`)).text();
      return readMetric(text, name, { platform_id: String(platformId), ...labels });
    },
    readyz: async () => ask(`${url}/readyz`),
  };
}

/** The value of the one series with these labels and no others. */
export function readMetric(text: string, name: string, labels: Labels = {}): number | undefined {
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
