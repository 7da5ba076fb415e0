import { rm } from 'node:fs/promises';
import { PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { type BenchAccount, newAccount, samplePayouts } from '../sample-payouts.js';
import { gapsOf, quantile, rateOf, sum } from '../statistics.js';
import { until } from '../until.js';
import { makeJournalDir, startWorkerProcess, type WorkerProcess, type WorkerReport } from '../worker-process.js';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** What counts as the full pace of all accounts. */
const FULL_PACE = 0.97;

/**
 * One account, ten and a hundred in one worker process, each at its own full pace. Then more in four processes that share
 * them out, until that is more than the machine carries.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const { alone, shared, processes, sends } = quick
    ? { alone: [1, 5], shared: [4], processes: 2, sends: 6 }
    : { alone: [1, 10, 100], shared: [100, 150, 200, 300, 500], processes: 4, sends: 40 };
  const measureEach = async (sizes: readonly number[], count: number): Promise<Measured[]> => {
    const measured: Measured[] = [];
    for (const size of sizes) {
      measured.push(await measure(size, count, sends));
      note(`${size} accounts in ${count} processes: done`);
    }
    return measured;
  };
  const inOne = await measureEach(alone, 1);
  const inSeveral = await measureEach(shared, processes);
  const rows = [...inOne, ...inSeveral];
  const oneRate = inOne[0]?.payoutsPerSecond ?? NaN;
  const paceOf = ({ accounts, payoutsPerSecond }: Measured): number => payoutsPerSecond / (accounts * oneRate);
  const [most, last] = [inOne.at(-1), inSeveral.at(-1)];
  if (most === undefined || last === undefined) throw new Error('Nothing was measured');
  // One account is at its own pace, so that a machine that carries no more is still a measurement.
  const carried = rows.filter((row) => paceOf(row) >= FULL_PACE).map(({ accounts }) => accounts);
  return {
    rows,
    figures: [
      figure(`rate of ${most.accounts} accounts, as a part of ${most.accounts} times one account's`, paceOf(most), {
        atLeast: FULL_PACE,
      }),
      figure(`the same of ${last.accounts} accounts in ${processes} processes`, paceOf(last), { atLeast: FULL_PACE }),
      figure(`accounts that ${processes} processes carried at ${FULL_PACE} on this machine`, Math.max(...carried), {
        atLeast: shared[0] ?? NaN,
      }),
      figure('gaps under 1000 ms', sum(rows.map(({ tooClose }) => tooClose)), { atMost: 0 }),
    ],
  };
}

type Measured = Awaited<ReturnType<typeof measure>>;

async function measure(size: number, processes: number, sends: number) {
  const redis = await startMeasuredRedis();
  const journalDir = await makeJournalDir();
  const accounts = Array.from({ length: size }, newAccount);
  const sandbox = await startSandbox({ accounts, latencyBeforeMs: { min: 0, max: 40 }, latencyAfterMs: 20 });
  const workers: WorkerProcess[] = [];
  try {
    for (const { platformId } of accounts) await enqueue(redis, platformId, sends + WARM_UP);
    const options = {
      redisUrl: redis.url,
      journalDir,
      accounts: accounts.map((account) => ({ ...account, baseUrl: sandbox.url })),
    };
    for (let index = 0; index < processes; index += 1) workers.push(await startWorkerProcess(options));
    const arrivalsOf = ({ platformId }: BenchAccount): number[] => sandbox.arrivals(platformId).map(({ atMs }) => atMs);
    await until('every account has started', () => accounts.every((account) => arrivalsOf(account).length >= WARM_UP));
    const [before, startedAt] = [await reportAll(workers), performance.now()];
    await until('all is sent', () => accounts.every((account) => arrivalsOf(account).length === sends + WARM_UP));
    const [after, elapsedMs] = [await reportAll(workers), performance.now() - startedAt];
    const arrivals = accounts.map((account) => arrivalsOf(account));
    const gapsMs = arrivals.flatMap(gapsOf);
    const overheadsMs = after.flatMap((report, index) => report.overheadsMs.slice(before[index]?.overheadsMs.length));
    const cpuMs = (reports: readonly WorkerReport[]): number => sum(reports.map((report) => report.cpuMs));
    return {
      accounts: size,
      processes,
      payoutsPerSecond: sum(arrivals.map((timesMs) => rateOf(timesMs.slice(WARM_UP - 1)))),
      smallestGapMs: Math.min(...gapsMs),
      tooClose: gapsMs.filter((gapMs) => gapMs < 1_000).length,
      medianOverheadMs: quantile(overheadsMs, 0.5),
      p99OverheadMs: quantile(overheadsMs, 0.99),
      cpuPercent: (100 * (cpuMs(after) - cpuMs(before))) / elapsedMs,
      memoryMb: sum(after.map(({ rss }) => rss)) / 2 ** 20,
    };
  } finally {
    for (const worker of workers) await worker.stop();
    await sandbox.close();
    await redis.close();
    await rm(journalDir, { recursive: true, force: true });
  }
}

async function reportAll(workers: readonly WorkerProcess[]): Promise<WorkerReport[]> {
  return Promise.all(workers.map(async (worker) => worker.report()));
}

async function enqueue(redis: MeasuredRedis, platformId: number, count: number): Promise<void> {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  await producer.enqueueMany(samplePayouts(count));
  await producer.close();
}
