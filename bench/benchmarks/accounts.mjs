import { rm } from 'node:fs/promises';
import { PayoutProducer } from '../../dist/index.js';
import { startSandbox } from '../../dist/sandbox/index.js';
import { startMeasuredRedis } from '../measured-redis.mjs';
import { figure } from '../report.mjs';
import { newAccount, samplePayouts } from '../sample-payouts.mjs';
import { gapsOf, quantile, rateOf, sum } from '../statistics.mjs';
import { until } from '../until.mjs';
import { makeJournalDir, startWorkerProcess } from '../worker-process.mjs';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** What counts as the full pace of all accounts. */
const FULL_PACE = 0.97;

/**
 * One account, ten and a hundred in one worker process, each at its own full pace. Then more in four processes that share
 * them out, until that is more than the machine carries.
 */
export async function run({ quick, note }) {
  const [alone, sends] = quick ? [[1, 5], 6] : [[1, 10, 100], 40];
  const [shared, processes] = quick ? [[4], 2] : [[100, 150, 200, 300, 500], 4];
  const rows = [];
  for (const [size, count] of [...alone.map((size) => [size, 1]), ...shared.map((size) => [size, processes])]) {
    rows.push(await measure(size, count, sends));
    note(`${size} accounts in ${count} processes: done`);
  }
  const [one] = rows;
  const paceOf = ({ accounts, payoutsPerSecond }) => payoutsPerSecond / (accounts * one.payoutsPerSecond);
  const most = rows[alone.length - 1];
  const inSeveral = rows.slice(alone.length);
  const last = inSeveral.at(-1);
  const carried = inSeveral.filter((row) => paceOf(row) >= FULL_PACE).map(({ accounts }) => accounts);
  return {
    rows,
    figures: [
      figure(`rate of ${most.accounts} accounts, as a part of ${most.accounts} times one account's`, paceOf(most), {
        atLeast: FULL_PACE,
      }),
      figure(`the same of ${last.accounts} accounts in ${processes} processes`, paceOf(last), { atLeast: FULL_PACE }),
      figure(`accounts that ${processes} processes carried at ${FULL_PACE} on this machine`, Math.max(0, ...carried), {
        atLeast: shared[0],
      }),
      figure('gaps under 1000 ms', sum(rows.map(({ tooClose }) => tooClose)), { atMost: 0 }),
    ],
  };
}

async function measure(size, processes, sends) {
  const redis = await startMeasuredRedis();
  const journalDir = await makeJournalDir();
  const accounts = Array.from({ length: size }, newAccount);
  const sandbox = await startSandbox({ accounts, latencyBeforeMs: { min: 0, max: 40 }, latencyAfterMs: 20 });
  const workers = [];
  try {
    for (const { platformId } of accounts) await enqueue(redis, platformId, sends + WARM_UP);
    const options = {
      redisUrl: redis.url,
      journalDir,
      accounts: accounts.map((account) => ({ ...account, baseUrl: sandbox.url })),
    };
    for (let index = 0; index < processes; index += 1) workers.push(await startWorkerProcess(options));
    const arrivalsOf = ({ platformId }) => sandbox.arrivals(platformId).map(({ atMs }) => atMs);
    await until('every account has started', () => accounts.every((account) => arrivalsOf(account).length >= WARM_UP));
    const [before, startedAt] = [await reportAll(workers), performance.now()];
    await until('all is sent', () => accounts.every((account) => arrivalsOf(account).length === sends + WARM_UP));
    const [after, elapsedMs] = [await reportAll(workers), performance.now() - startedAt];
    const arrivals = accounts.map((account) => arrivalsOf(account));
    const gapsMs = arrivals.flatMap(gapsOf);
    const overheadsMs = after.flatMap((report, index) => report.overheadsMs.slice(before[index].overheadsMs.length));
    const cpuMs = (reports) => sum(reports.map((report) => report.cpuMs));
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

async function reportAll(workers) {
  return Promise.all(workers.map(async (worker) => worker.report()));
}

async function enqueue(redis, platformId, count) {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  await producer.enqueueMany(samplePayouts(count));
  await producer.close();
}
