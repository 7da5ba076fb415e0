import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { closeAfterTest } from './close-after-test.js';
import { openWorkerIn, worldOfTest, type PayoutWorldOptions } from './payout-world.js';

type Labels = Readonly<Record<string, string>>;

interface WatchedWorkerOptions extends Pick<PayoutWorldOptions, 'redis' | 'sandbox'> {
  readonly stuckAfterMs?: number;
  readonly prepare?: (journalDir: string, platformId: number) => Promise<unknown>;
}

export const QUICK_ACCOUNT = {
  leaseMs: 1_000,
  quarantineMs: 1_000,
  inFlightMaxMs: 100,
  pollMinMs: 200,
  pollMaxMs: 500,
};

export async function ask(url: string, init: RequestInit = {}): Promise<[status: number, body: unknown]> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(5_000) });
  return [response.status, await response.json()];
}

export async function startWatchedWorker({ stuckAfterMs, prepare, ...worldOptions }: WatchedWorkerOptions = {}) {
  const world = await worldOfTest(worldOptions);
  const { platformId, sandbox, producer, env } = world;
  await prepare?.(env.SEND_JOURNAL_DIR, platformId);
  const metrics = createWorkerMetrics({ version: '1.2.3', ...(stuckAfterMs && { stuckAfterMs }) });
  const worker = await openWorkerIn(world, { observe: metrics.observe }, QUICK_ACCOUNT);
  const { url } = closeAfterTest(
    await startHealthServer({ host: '127.0.0.1', port: 0, metrics, accounts: () => worker.accounts }),
  );
  return {
    ...{ platformId, worker, sandbox, producer, url },
    enqueue: async (payoutId: string, addressTo = `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxx`) => {
      await producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo });
    },
    metric: async (name: string, labels: Labels = {}) => {
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
