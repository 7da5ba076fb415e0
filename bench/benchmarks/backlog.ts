import { PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { type MeasuredRedis, startMeasuredRedis, untilQuiet } from '../measured-redis.js';
import { figure } from '../figure.js';
import { type BenchAccount, newAccount, samplePayouts } from '../sample-payouts.js';
import { gapsOf, median } from '../statistics.js';
import { until } from '../until.js';
import { startWorkerProcess, type WorkerProcess } from '../worker-process.js';

const STEP = 20_000;
/** Sending alone stays far below it; the check at the start that every payout has its job stays far above. */
const QUIET_COMMANDS_PER_SECOND = 1_500;

/** What a send costs while few payouts wait, and while a million do. */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const [least, most, sends] = quick ? [100, 10_000, 4] : [1_000, 1_000_000, 40];
  const few = await measure(least, sends, note);
  const many = await measure(most, sends, note);
  const slower = (name: string, key: keyof typeof few) => figure(name, many[key] / few[key], { atMost: 1.05 });
  return {
    rows: [few, many],
    figures: [
      slower(`time of a send with ${many.queued} queued, as a part of that with ${few.queued}`, 'medianPeriodMs'),
      slower('Redis commands of a send, the same way', 'redisCommandsPerSend'),
    ],
  };
}

async function measure(size: number, sends: number, note: BenchmarkRun['note']) {
  const redis = await startMeasuredRedis(['--appendfsync', 'no']);
  const account = newAccount();
  const sandbox = await startSandbox({ accounts: [account], latencyBeforeMs: 30, latencyAfterMs: 20 });
  let worker: WorkerProcess | undefined;
  try {
    await enqueue(redis, account, size);
    note(`${size} payouts are queued`);
    worker = await startWorkerProcess({
      redisUrl: redis.url,
      accounts: [{ ...account, baseUrl: sandbox.url }],
      allowVolatileRedis: true,
    });
    const sent = () => sandbox.stats().arrivals;
    await until('sending has started', () => sent() >= 2);
    await untilQuiet(redis, QUIET_COMMANDS_PER_SECOND);
    const already = sent();
    const [before, commands] = [await worker.report(), await redis.countCommands()];
    await until('enough was sent', () => sent() >= already + sends);
    const [after, commandsAfter] = [await worker.report(), await redis.countCommands()];
    const { arrivalsAtMs } = sandbox.stats();
    return {
      queued: size,
      sends,
      medianPeriodMs: median(gapsOf(arrivalsAtMs.slice(already - 1))),
      medianOverheadMs: median(after.overheadsMs.slice(before.overheadsMs.length)),
      redisCommandsPerSend: (commandsAfter - commands) / sends,
      cpuMsPerSend: (after.cpuMs - before.cpuMs) / sends,
      workerMemoryMb: after.rss / 2 ** 20,
    };
  } finally {
    await worker?.stop();
    await sandbox.close();
    await redis.close();
  }
}

async function enqueue(redis: MeasuredRedis, { platformId }: BenchAccount, count: number): Promise<void> {
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  for (let start = 0; start < count; start += STEP) {
    await producer.enqueueMany(samplePayouts(Math.min(STEP, count - start), `invoice-${start}`));
  }
  await producer.close();
}
