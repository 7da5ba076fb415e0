import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import type { GatewayApi } from '../../src/base/settings.js';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { type BenchKeys, makeBenchKeys } from '../bench-keys.js';
import { startMeasuredRedis } from '../measured-redis.js';
import { type Figure, figure } from '../figure.js';
import { newAccount, samplePayouts } from '../sample-payouts.js';
import { gapsOf, mean, quantile } from '../statistics.js';
import { until } from '../until.js';
import { startWorkerProcess } from '../worker-process.js';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** From the last send until its status was polled. */
const SETTLE_MS = 3_500;

/**
 * What a payout costs above the interval and its own request: time, CPU and Redis commands, status polls included; the same
 * over the second API, and with signed payouts: each has a worker and a Redis of its own, all at the same time.
 */
export async function run({ quick }: BenchmarkRun): Promise<BenchmarkResult> {
  const payouts = quick ? 10 : 120;
  const keys = await makeBenchKeys();
  try {
    const [plain, second, signed] = await Promise.all([
      measure('without keys', payouts, 'v1'),
      measure('API v2', payouts, 'v2'),
      measure('signed', payouts, 'v1', keys),
    ]);
    const periods = [plain.meanPeriodMs, second.meanPeriodMs];
    return {
      rows: [plain, second, signed],
      figures: [
        ...limits(plain),
        ...limits(second),
        ...limits(signed),
        figure('period: the slower API / the faster', Math.max(...periods) / Math.min(...periods), { atMost: 1.05 }),
        figure('period with keys / without', signed.meanPeriodMs / plain.meanPeriodMs, { atMost: 1.05 }),
      ],
    };
  } finally {
    await keys.close();
  }
}

function limits({ name, medianOverheadMs, p99OverheadMs, tooClose }: Awaited<ReturnType<typeof measure>>): Figure[] {
  return [
    figure(`median overhead ${name}, ms`, medianOverheadMs, { atMost: 2.5 }),
    figure(`99th percentile ${name}, ms`, p99OverheadMs, { atMost: 8 }),
    figure(`gaps under 1000 ms ${name}`, tooClose, { atMost: 0 }),
  ];
}

async function measure(name: string, payouts: number, api: GatewayApi, keys?: BenchKeys) {
  const redis = await startMeasuredRedis();
  const account = newAccount();
  const sandbox = await startSandbox({
    accounts: [account],
    latencyBeforeMs: { min: 0, max: 300 },
    latencyAfterMs: { min: 20, max: 80 },
  });
  const worker = await startWorkerProcess({
    redisUrl: redis.url,
    accounts: [{ ...account, api, baseUrl: sandbox.url, pollMinMs: 1_500 }],
    ...keys?.worker,
  });
  const { platformId } = account;
  const audience = `${sandbox.url}#${platformId}`;
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, ...(keys && { ...keys.producer, audience }) });
  try {
    // What was signed before the worker's journal was begun is held.
    await until('the worker sends', async () => (await producer.stats()).sender !== null);
    await producer.enqueueMany(samplePayouts(payouts + WARM_UP));
    await until('the first were sent', () => sandbox.stats().arrivals >= WARM_UP);
    const before = { ...(await worker.report()), commands: await redis.countCommands() };
    await until('all were sent', () => sandbox.stats().arrivals === payouts + WARM_UP);
    // Not asked of Redis before: each question would count as commands of the worker.
    await delay(SETTLE_MS);
    await until('all are completed', async () => (await producer.stats()).completed === payouts + WARM_UP);
    const after = { ...(await worker.report()), commands: await redis.countCommands() };
    const overheadsMs = after.overheadsMs.slice(WARM_UP - 1);
    const gapsMs = gapsOf(sandbox.stats().arrivalsAtMs);
    return {
      ...{ name, payouts },
      medianOverheadMs: quantile(overheadsMs, 0.5),
      p99OverheadMs: quantile(overheadsMs, 0.99),
      meanPeriodMs: mean(gapsMs.slice(WARM_UP - 1)),
      tooClose: gapsMs.filter((gapMs) => gapMs < 1_000).length,
      cpuMsPerPayout: (after.cpuMs - before.cpuMs) / payouts,
      redisCommandsPerPayout: (after.commands - before.commands) / payouts,
      overheadsMs,
    };
  } finally {
    await producer.close();
    await worker.stop();
    await sandbox.close();
    await redis.close();
  }
}
