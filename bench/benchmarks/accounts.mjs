import { PayoutProducer } from '../../dist/index.js';
import { startSandbox } from '../../dist/sandbox/index.js';
import { startMeasuredRedis } from '../measured-redis.mjs';
import { figure } from '../report.mjs';
import { newAccount, samplePayouts } from '../sample-payouts.mjs';
import { gapsOf, quantile, rateOf, sum } from '../statistics.mjs';
import { until } from '../until.mjs';
import { startWorkerProcess } from '../worker-process.mjs';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** One account, ten and a hundred in one worker process, each at its own full pace. */
export async function run({ quick, note }) {
  const [sizes, sends] = quick ? [[1, 5], 6] : [[1, 10, 100], 40];
  const rows = [];
  for (const size of sizes) {
    rows.push(await measure(size, sends));
    note(`${size} accounts: done`);
  }
  const [one, most] = [rows[0], rows.at(-1)];
  return {
    rows,
    figures: [
      figure(
        `rate of ${most.accounts} accounts, as a part of ${most.accounts} times one account's`,
        most.payoutsPerSecond / (most.accounts * one.payoutsPerSecond),
        { atLeast: 0.97 },
      ),
      figure('gaps under 1000 ms', sum(rows.map(({ tooClose }) => tooClose)), { atMost: 0 }),
    ],
  };
}

async function measure(size, sends) {
  const redis = await startMeasuredRedis();
  const accounts = Array.from({ length: size }, newAccount);
  const sandbox = await startSandbox({ accounts, latencyBeforeMs: { min: 0, max: 40 }, latencyAfterMs: 20 });
  let worker;
  try {
    for (const { platformId } of accounts) await enqueue(redis, platformId, sends + WARM_UP);
    worker = await startWorkerProcess({
      redisUrl: redis.url,
      accounts: accounts.map((account) => ({ ...account, baseUrl: sandbox.url })),
    });
    const arrivalsOf = ({ platformId }) => sandbox.arrivals(platformId).map(({ atMs }) => atMs);
    await until('every account has started', () => accounts.every((account) => arrivalsOf(account).length >= WARM_UP));
    const [before, startedAt] = [await worker.report(), performance.now()];
    await until('all is sent', () => accounts.every((account) => arrivalsOf(account).length === sends + WARM_UP));
    const [after, elapsedMs] = [await worker.report(), performance.now() - startedAt];
    const arrivals = accounts.map((account) => arrivalsOf(account));
    const gapsMs = arrivals.flatMap(gapsOf);
    const overheadsMs = after.overheadsMs.slice(before.overheadsMs.length);
    return {
      accounts: size,
      payoutsPerSecond: sum(arrivals.map((timesMs) => rateOf(timesMs.slice(WARM_UP - 1)))),
      smallestGapMs: Math.min(...gapsMs),
      tooClose: gapsMs.filter((gapMs) => gapMs < 1_000).length,
      medianOverheadMs: quantile(overheadsMs, 0.5),
      p99OverheadMs: quantile(overheadsMs, 0.99),
      cpuPercent: (100 * (after.cpuMs - before.cpuMs)) / elapsedMs,
      memoryMb: after.rss / 2 ** 20,
    };
  } finally {
    await worker?.stop();
    await sandbox.close();
    await redis.close();
  }
}

async function enqueue(redis, platformId, count) {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  await producer.enqueueMany(samplePayouts(count));
  await producer.close();
}
