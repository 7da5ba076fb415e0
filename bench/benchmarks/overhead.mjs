import { PayoutProducer } from '../../dist/index.js';
import { startSandbox } from '../../dist/sandbox/index.js';
import { startMeasuredRedis } from '../measured-redis.mjs';
import { figure } from '../report.mjs';
import { newAccount, samplePayouts } from '../sample-payouts.mjs';
import { gapsOf, mean, quantile } from '../statistics.mjs';
import { until } from '../until.mjs';
import { startWorkerProcess } from '../worker-process.mjs';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** What a payout costs above the interval and its own request: time, CPU and Redis commands, status polls included. */
export async function run({ quick }) {
  const payouts = quick ? 10 : 120;
  const redis = await startMeasuredRedis();
  const account = newAccount();
  const sandbox = await startSandbox({
    accounts: [account],
    latencyBeforeMs: { min: 0, max: 300 },
    latencyAfterMs: { min: 20, max: 80 },
  });
  const worker = await startWorkerProcess({
    redisUrl: redis.url,
    accounts: [{ ...account, baseUrl: sandbox.url, pollMinMs: 1_500 }],
  });
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: account.platformId });
  try {
    await producer.enqueueMany(samplePayouts(payouts + WARM_UP));
    await until('the first were sent', () => sandbox.stats().arrivals >= WARM_UP);
    const before = { ...(await worker.report()), commands: await redis.countCommands() };
    await until('all are completed', async () => (await producer.stats()).completed === payouts + WARM_UP);
    const after = { ...(await worker.report()), commands: await redis.countCommands() };
    const overheadsMs = after.overheadsMs.slice(WARM_UP - 1);
    const row = {
      payouts,
      medianOverheadMs: quantile(overheadsMs, 0.5),
      p99OverheadMs: quantile(overheadsMs, 0.99),
      meanPeriodMs: mean(gapsOf(sandbox.stats().arrivalsAtMs.slice(WARM_UP - 1))),
      cpuMsPerPayout: (after.cpuMs - before.cpuMs) / payouts,
      redisCommandsPerPayout: (after.commands - before.commands) / payouts,
      overheadsMs,
    };
    return {
      rows: [row],
      figures: [
        figure('median overhead, ms', row.medianOverheadMs, { atMost: 5 }),
        figure('99th percentile of the overhead, ms', row.p99OverheadMs, { atMost: 15 }),
        figure('gaps under 1000 ms', gapsOf(sandbox.stats().arrivalsAtMs).filter((gapMs) => gapMs < 1_000).length, {
          atMost: 0,
        }),
      ],
    };
  } finally {
    await producer.close();
    await worker.stop();
    await sandbox.close();
    await redis.close();
  }
}
