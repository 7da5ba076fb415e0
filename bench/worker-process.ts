import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AccountOptions, PayoutWorkerOptions } from 'payout-queue';
import type { ChildReport } from './worker-child.js';

const CHILD = new URL('worker-child.ts', import.meta.url);

/** Short waits before the first send; the interval stays the real one. */
const QUICK_START = { leaseMs: 2_000, quarantineMs: 1_000, inFlightMaxMs: 1_000 };

interface WorkerProcessOptions extends Pick<PayoutWorkerOptions, 'keysFile'> {
  /** Of the worker's key, which signs final states. */
  readonly receiptKeyFile?: string;
  readonly redisUrl: string;
  readonly accounts: readonly AccountOptions[];
  /** Of several processes that share accounts; without it the process has one of its own. */
  readonly journalDir?: string;
  readonly allowVolatileRedis?: boolean;
}

export interface WorkerReport {
  readonly cpuMs: number;
  /** Bytes. */
  readonly rss: number;
  readonly overheadsMs: readonly number[];
}

export interface WorkerProcess {
  /** CPU time and overheads of all sends so far. */
  report(): Promise<WorkerReport>;
  stop(): Promise<void>;
}

/** Starts a payout worker in a process of its own. */
export async function startWorkerProcess({
  redisUrl,
  accounts,
  journalDir: given,
  allowVolatileRedis = false,
  ...keys
}: WorkerProcessOptions): Promise<WorkerProcess> {
  const journalDir = given ?? (await makeJournalDir());
  const child = fork(CHILD);
  const options = {
    redisUrl,
    journalDir,
    allowVolatileRedis,
    ...keys,
    accounts: accounts.map((account) => ({ ...QUICK_START, ...account })),
  };
  child.send({ kind: 'start', options });
  await replyOf(child);
  return {
    async report() {
      child.send({ kind: 'report' });
      const { cpuUsage, rss, overheadsMs } = (await replyOf(child)) as ChildReport;
      return { cpuMs: (cpuUsage.user + cpuUsage.system) / 1_000, rss, overheadsMs };
    },
    async stop() {
      const exit = once(child, 'exit');
      child.send({ kind: 'stop' });
      await exit;
      if (given === undefined) await rm(journalDir, { recursive: true, force: true });
    },
  };
}

/** A folder for send journals, which its maker removes. */
export async function makeJournalDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'payouts-bench-'));
}

async function replyOf(child: ChildProcess): Promise<unknown> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]: unknown[]) => message),
      once(child, 'exit', { signal }).then(([code]: unknown[]) => {
        throw new Error(`The worker's process ended with code ${String(code)}`);
      }),
    ]);
  } finally {
    settled.abort();
  }
}
