import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from 'payout-queue';
import { startSandbox } from 'payout-queue/sandbox';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { groupByAsker } from '../command-askers.js';
import { type CountedCommand, recordCommands } from '../command-log.js';
import { startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { newAccount, samplePayouts } from '../sample-payouts.js';
import { sum } from '../statistics.js';
import { until } from '../until.js';
import { makeJournalDir, startWorkerProcess, type WorkerProcess } from '../worker-process.js';

/** The first sends load code and open connections. */
const WARM_UP = 3;

/** After a start and after the last payout something is still done because of it. */
const SETTLE_MS = 15_000;

const CLOCK = 'time';

/** The lease as it is without a setting, since its heartbeats are counted. */
const LEASE = { leaseMs: 10_000 };

/**
 * What a worker asks of Redis, by who asks: a second of an account without payouts, a second of a worker that stands by, and
 * a payout at the real interval with its status polls. Commands that a client sends, and those that scripts run.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const [idleMs, payouts] = quick ? [3_000, 5] : [60_000, 150];
  const redis = await startMeasuredRedis();
  const account = newAccount();
  const sandbox = await startSandbox({ accounts: [account], latencyBeforeMs: 100, latencyAfterMs: 50 });
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: account.platformId });
  const completed = async (): Promise<number> => (await producer.stats()).completed;
  await completed();
  const record = await recordCommands(redis.url);
  // A worker with a journal of its own on the same host would be refused, not stand by.
  const journalDir = await makeJournalDir();
  const workers = new Set<WorkerProcess>();
  const startWorker = async (): Promise<WorkerProcess> => {
    const accounts = [{ ...account, ...LEASE, baseUrl: sandbox.url, pollMinMs: 1_500 }];
    const worker = await startWorkerProcess({ redisUrl: redis.url, accounts, journalDir });
    workers.add(worker);
    return worker;
  };
  const stopWorker = async (worker: WorkerProcess): Promise<void> => {
    workers.delete(worker);
    await worker.stop();
  };
  const measure = async (worker: WorkerProcess, work: () => Promise<number>): Promise<Measured> => {
    const before = await worker.report();
    record.take();
    const units = await work();
    const commands = record.take();
    return { commands, units, cpuMs: ((await worker.report()).cpuMs - before.cpuMs) / units };
  };
  const rest = async () => {
    await delay(idleMs);
    return idleMs / 1_000;
  };
  try {
    const sender = await startWorker();
    await producer.enqueueMany(samplePayouts(WARM_UP));
    await until('the first are completed', async () => (await completed()) === WARM_UP);
    await delay(SETTLE_MS);
    const idle = await measure(sender, rest);
    note('without payouts: done');
    // Before the payouts, since what follows from them goes on for minutes.
    const standby = await startWorker();
    await delay(SETTLE_MS);
    const both = await measure(standby, rest);
    await stopWorker(standby);
    note('standing by: done');
    await producer.enqueueMany(samplePayouts(payouts, 'busy'));
    const busy = await measure(sender, async () => {
      await until('all are completed', async () => (await completed()) === payouts + WARM_UP);
      return payouts;
    });
    note('with payouts: done');
    return report({ idle, busy, both });
  } finally {
    await record.close();
    await producer.close();
    for (const worker of workers) await stopWorker(worker);
    await sandbox.close();
    await redis.close();
    await rm(journalDir, { recursive: true });
  }
}

interface Measured {
  readonly commands: readonly CountedCommand[];
  /** Seconds or payouts. */
  readonly units: number;
  readonly cpuMs: number;
}

function report({ idle, busy, both }: Record<'idle' | 'busy' | 'both', Measured>): BenchmarkResult {
  const [paid, rested, stoodBy] = [busy, idle, both].map(({ commands }) => groupByAsker(commands));
  const askers = [...new Set([paid, rested, stoodBy].flatMap((groups) => [...(groups?.values() ?? [])]))];
  const seen = new Map(askers.map(({ asks, purpose }) => [asks, purpose]));
  const rows = [...seen].map(([asks, purpose]) => ({
    asks,
    purpose,
    aPayout: (paid?.get(asks)?.commands ?? 0) / busy.units,
    sentAPayout: (paid?.get(asks)?.sent ?? 0) / busy.units,
    sentASecondIdle: (rested?.get(asks)?.sent ?? 0) / idle.units,
    sentASecondWithStandby: (stoodBy?.get(asks)?.sent ?? 0) / both.units,
  }));
  rows.sort((one, other) => other.aPayout - one.aPayout || other.sentASecondIdle - one.sentASecondIdle);
  const figures = [
    figure('Redis commands a payout, those in scripts included', total(busy), { atMost: 152 }),
    figure('CPU of the worker a payout, ms', busy.cpuMs, { atMost: 18 }),
    figure('commands sent a second without payouts', sent(idle), { atMost: 1 }),
    figure('the same of one that stands by', sent(both) - sent(idle), { atMost: 1 }),
    figure('reads of the clock a second and process', countOf(idle, CLOCK), { atMost: 1.1 }),
    figure('CPU a second without payouts, ms', idle.cpuMs, { atMost: 10 }),
    figure('the same of one that stands by', both.cpuMs, { atMost: 10 }),
  ];
  const each = { aPayout: busy.commands, idle: idle.commands, withStandby: both.commands };
  return { rows, figures, commands: each };
}

function countOf({ commands, units }: Measured, name: string): number {
  return (commands.find(({ command }) => command === name)?.count ?? 0) / units;
}

function total({ commands, units }: Measured): number {
  return sum(commands.map(({ count }) => count)) / units;
}

/** By an account: the clock is read once for all accounts of a process. */
function sent({ commands, units }: Measured): number {
  return sum(commands.filter(({ command, isSent }) => isSent && command !== CLOCK).map(({ count }) => count)) / units;
}
