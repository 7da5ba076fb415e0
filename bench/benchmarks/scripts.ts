import { rm } from 'node:fs/promises';
import { PayoutProducer } from 'payout-queue';
import type { BenchmarkResult, BenchmarkRun, Row } from '../benchmark.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { startSandbox } from 'payout-queue/sandbox';
import { AUDIENCE } from '../ledger-account.js';
import { listActs } from '../long-commands/acts.js';
import {
  type CommandTimes,
  LOGGED_FROM_US,
  type TakenTimes,
  watchCommandTimes,
} from '../long-commands/command-times.js';
import { fillAccount } from '../long-commands/fill-account.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { type BenchAccount, newAccount } from '../sample-payouts.js';
import { until } from '../until.js';
import { makeJournalDir, startWorkerProcess } from '../worker-process.js';

/** Redis runs one command at a time: a longer one delays the sends of every account. */
const LONGEST_MS = 5;
/** A command that was only descheduled is not the longest each time. */
const REPEATED = 3;
const SENDS = 20;

interface Measuring {
  readonly redis: MeasuredRedis;
  readonly account: BenchAccount;
  readonly bulk: number;
  readonly note: BenchmarkRun['note'];
}

interface ActRow extends Row {
  readonly act: string;
  readonly longestMs: number;
}

/** How long each command keeps Redis busy, with 1,000,000 payouts queued and 200,000 completed in one account. */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const size = quick
    ? { completed: 1_000, queued: 10_000, bulk: 100 }
    : { completed: 200_000, queued: 1_000_000, bulk: 1_000 };
  // What is measured is how long Redis is busy, not how long its disk is.
  const redis = await startMeasuredRedis(['--appendonly', 'no', '--save', '']);
  try {
    const account = newAccount();
    await fillAccount(redis.url, account.platformId, size, note);
    const rows = await measureAll({ redis, account, bulk: size.bulk, note });
    return { rows, figures: rows.map(({ act, longestMs }) => figure(`${act}, ms`, longestMs, { atMost: LONGEST_MS })) };
  } finally {
    await redis.close();
  }
}

async function measureAll({ redis, account, bulk, note }: Measuring): Promise<ActRow[]> {
  const { platformId } = account;
  const times = await watchCommandTimes(redis.client);
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  const access = openLedger({ redisUrl: redis.url, platformId }, 'reply');
  // One for all repetitions: with an empty journal a worker would rightly not send after another's sends.
  const journalDir = await makeJournalDir();
  const rows: ActRow[] = [];
  try {
    for (const { name, run: act } of listActs({ redisUrl: redis.url, platformId, producer, access, size: bulk })) {
      rows.push(await measureAct(name, act, times));
      note(JSON.stringify(rows.at(-1)));
    }
    rows.push(await measureAct('a worker', async () => sendSome(redis, account, journalDir), times));
    return rows;
  } finally {
    await rm(journalDir, { recursive: true });
    await access.close();
    await producer.close();
  }
}

/** The longest command of an act, and how long it is at least in each repetition. */
async function measureAct(act: string, run: () => Promise<unknown>, times: CommandTimes): Promise<ActRow> {
  const runs: TakenTimes[] = [];
  await times.reset();
  for (let count = 0; count < REPEATED; count += 1) {
    await run();
    runs.push(await times.take());
  }
  // A script that is new to Redis is read first: in the first repetition only.
  const names = [...(runs[0]?.longest.keys() ?? [])].filter((name) => runs.every(({ longest }) => longest.has(name)));
  const least = names.map((command) => ({
    command,
    ms: Math.min(...runs.map(({ longest }) => longest.get(command) ?? NaN)),
  }));
  const [first, second] = least.sort((one, other) => other.ms - one.ms);
  return {
    act,
    // No command of it was slow enough for the log.
    longestMs: first?.ms ?? (runs.every(({ calls }) => calls > 0) ? LOGGED_FROM_US / 1_000 : NaN),
    command: first?.command ?? '',
    next: second === undefined ? '' : `${second.command} ${second.ms.toFixed(1)}`,
    everMs: Math.max(...runs.map(({ everMs }) => everMs)),
  };
}

/** A worker checks its jobs at the start, and sends; it ends with its lease given back. */
async function sendSome(redis: MeasuredRedis, account: BenchAccount, journalDir: string): Promise<void> {
  const sandbox = await startSandbox({ accounts: [account], latencyBeforeMs: 10, latencyAfterMs: 10 });
  const worker = await startWorkerProcess({
    redisUrl: redis.url,
    accounts: [{ ...account, audience: AUDIENCE, baseUrl: sandbox.url }],
    journalDir,
    allowVolatileRedis: true,
  });
  try {
    await until('enough was sent', () => sandbox.stats().arrivals >= SENDS);
  } finally {
    await worker.stop();
    await sandbox.close();
  }
}
