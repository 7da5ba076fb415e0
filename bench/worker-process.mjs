import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHILD = new URL('worker-child.mjs', import.meta.url);

/** Short waits before the first send; the interval stays the real one. */
const QUICK_START = { leaseMs: 2_000, quarantineMs: 1_000, inFlightMaxMs: 1_000 };

/**
 * Starts a payout worker in a process of its own.
 * @param accounts - `{ platformId, secretKey, baseUrl }` each
 * @param journalDir - of several processes that share accounts; without it the process has one of its own
 * @param keys - `keysFile` and `receiptKey`, where payouts are signed
 */
export async function startWorkerProcess({
  redisUrl,
  accounts,
  journalDir: given,
  allowVolatileRedis = false,
  ...keys
}) {
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
    /** CPU time and overheads of all sends so far. */
    async report() {
      child.send({ kind: 'report' });
      const { cpuUsage, rss, overheadsMs } = await replyOf(child);
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
export async function makeJournalDir() {
  return mkdtemp(join(tmpdir(), 'payouts-bench-'));
}

async function replyOf(child) {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]) => message),
      once(child, 'exit', { signal }).then(([code]) => {
        throw new Error(`The worker's process ended with code ${code}`);
      }),
    ]);
  } finally {
    settled.abort();
  }
}
