/** Hours at the real pace, while workers and Redis fail: `npm run soak -- --help`. */
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { systemClock } from '../../../src/base/clock.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { Random } from '../../doubles/random.js';
import { until } from '../../support/until.js';
import { paymentOf, PLATFORM_ID, REAL } from '../chaos/plan.js';
import { Gateway, WorkerHost } from '../chaos/processes.js';
import { RedisServer } from '../chaos/redis-server.js';
import { countStates, findBroken, readPayouts } from '../chaos/verdict.js';
import { exitOnSignals, print, runCommand, wholeNumber } from '../command-line.js';

const USAGE = `npm run soak -- [--hours H] [--seed SEED] [--out DIR]

Sends payouts at the real interval, with network jitter, through three workers on one Redis. Every two to four minutes a worker
is killed, stopped for longer than its lease, or ended in good order; every ten to twenty Redis is killed and started again.
Retention removes old payouts meanwhile. Then the faults end, everything has to drain, and the gateway's book is held against the
three promises. Settings are the defaults. Memory and file descriptors are sampled twice a minute.

  --hours H     for how long, such as 4 or 0.2 (1)
  --seed SEED   decides which faults strike (1)
  --out DIR     for samples.jsonl and summary.json (reports/soak)
`;

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: 'reports/soak' },
    help: { type: 'boolean', default: false },
  },
});

const MINUTE_MS = 60_000;
const BACKLOG = 60;
const OLD_AT_ONCE = 500;
const DRAINED_WITHIN_MS = 10 * MINUTE_MS;
/** After the first tenth of a run: the process has seen everything once. */
const GROWTH_ALLOWED_MB = 60;
const DESCRIPTORS_ALLOWED = 100;

interface Sample {
  readonly rssMb: number;
  readonly fileDescriptors: number;
}

async function main(): Promise<boolean> {
  if (!(Number(values.hours) > 0)) throw new Error(`--hours must be a number such as 4 or 0.2\n${USAGE}`);
  const out = resolve(values.out);
  await mkdir(out, { recursive: true });
  const dir = await mkdtemp(join(tmpdir(), 'payouts-soak-'));
  const { broken, ...summary } = await soak(Number(values.hours) * 60 * MINUTE_MS, { dir, out });
  await writeFile(join(out, 'summary.json'), `${JSON.stringify({ ...summary, broken: broken.length }, null, 2)}\n`);
  for (const [name, value] of Object.entries(summary)) print(`${name.padEnd(18)} ${JSON.stringify(value)}`);
  for (const text of broken) print(`FAILED  ${text}`);
  if (broken.length === 0) await rm(dir, { recursive: true, force: true });
  else print(`logs: ${dir}`);
  print(broken.length === 0 ? '1 passed, 0 failed' : '0 passed, 1 failed');
  return broken.length === 0;
}

/** @param dir - for data and logs @param out - for the samples */
async function soak(durationMs: number, { dir, out }: { readonly dir: string; readonly out: string }) {
  const seed = wholeNumber(values.seed, USAGE);
  const startedAt = performance.now();
  const broken: string[] = [];
  let mishaps = 0;
  const note = (text: string): void => {
    print(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(9)} s  ${text}`);
  };
  const strike = (text: string): void => {
    mishaps += 1;
    note(text);
  };
  const redis = await RedisServer.start(dir, note);
  const gateway = await Gateway.start({ seed, timing: REAL, signed: false }, dir);
  const environment = {
    ...{ REDIS_URL: redis.url, GATEWAY_BASE_URL: gateway.url, SEND_JOURNAL_DIR: join(dir, 'journal') },
    ...{ PAYOUT_RETENTION_DAYS: '1', HEALTH_PORT: '0' },
  };
  const workers = [1, 2, 3].map(
    (number) => new WorkerHost(`worker-${number}`, dir, environment, (defect) => broken.push(defect)),
  );
  /** It is never ended. */
  const first = workers[0] as WorkerHost;
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId: PLATFORM_ID });
  const client = new Redis(redis.url, { maxRetriesPerRequest: 1 }).on('error', () => undefined);
  const ended = new AbortController();
  const end = ended.signal;
  const payoutIds: string[] = [];
  const samples: Sample[] = [];
  let oldMade = 0;

  /** Keeps the queue filled. Redis may be away meanwhile: asking again is safe. */
  const order = async (): Promise<void> => {
    const { queued } = await producer.stats();
    if (queued >= BACKLOG / 2) return;
    const more = Array.from({ length: BACKLOG - queued }, (_, index) => `P-${payoutIds.length + index + 1}`);
    await producer.enqueueMany(more.map(paymentOf));
    payoutIds.push(...more);
  };
  const age = async (): Promise<void> => {
    await makeOld(redis.url, oldMade);
    oldMade += OLD_AT_ONCE;
  };
  const sample = async (): Promise<void> => {
    const found = await sampleProcess(first.pid);
    samples.push(found);
    const redisBytes = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await appendFile(join(out, 'samples.jsonl'), `${JSON.stringify({ ...found, redisBytes })}\n`);
  };
  const random = new Random(seed);
  const troubleWorkers = async (): Promise<void> => {
    while (await passes(random.between(2, 4) * MINUTE_MS, end)) {
      const kind = random.pick(['kill', 'stop', 'end'] as const);
      const worker = random.pick(kind === 'stop' ? workers : workers.slice(1));
      strike(`${kind} ${worker.name}`);
      if (kind === 'stop') {
        worker.stop();
        // Longer than the lease: another worker takes over.
        await passes(25_000, end);
        worker.continue();
      } else {
        await (kind === 'kill' ? worker.kill() : worker.endInGoodOrder());
        await passes(5_000, end);
        worker.startAgain();
      }
    }
  };
  const troubleRedis = async (): Promise<void> => {
    const ofRedis = new Random(seed + 1);
    while (await passes(ofRedis.between(10, 20) * MINUTE_MS, end)) {
      strike('kill Redis');
      await redis.killFor(3_000);
    }
  };

  try {
    setTimeout(() => {
      ended.abort();
    }, durationMs).unref();
    await Promise.all([
      ...[repeat(age, 10 * MINUTE_MS, end), repeat(order, 10_000, end), repeat(sample, 30_000, end)],
      ...[troubleWorkers(), troubleRedis()],
    ]);
    note('the faults end');
    const isDrained = async (): Promise<boolean> => {
      const { queued, sending, in_progress: inProgress, cancelled } = await producer.stats();
      return queued + sending + inProgress + cancelled === 0;
    };
    await until(
      'all is paid, and the old payouts are removed',
      async () => isDrained().catch(() => false),
      DRAINED_WITHIN_MS,
    );
    await sample();
    await Promise.all(workers.map(async (worker) => worker.endInGoodOrder()));
    const payouts = await readPayouts(payoutIds, async (payoutId) => producer.get(payoutId));
    const book = await gateway.readBook();
    const states = countStates(payouts);
    const { unknown = 0 } = states;
    // Each worker that was killed, or stopped for good, can leave one.
    if (unknown > mishaps) broken.push(`${unknown} payouts became unknown`);
    const settled = samples.slice(Math.floor(samples.length / 10));
    const rssMb = [settled[0]?.rssMb ?? 0, settled.at(-1)?.rssMb ?? 0] as const;
    const fileDescriptors = Math.max(...samples.map((each) => each.fileDescriptors));
    if (rssMb[1] - rssMb[0] > GROWTH_ALLOWED_MB) broken.push(`the memory of ${first.name} grew: ${rssMb.join()} MB`);
    if (fileDescriptors > DESCRIPTORS_ALLOWED) broken.push(`${first.name} had ${fileDescriptors} file descriptors`);
    broken.push(...findBroken(book, payouts, REAL.minGapMs));
    return {
      ...{ hours: durationMs / 60 / MINUTE_MS, payouts: payouts.size, states, withdrawals: book.arrivals.length },
      ...{ smallestGapMs: book.stats.smallestGapMs, oldRemoved: oldMade, rssMb, fileDescriptors, mishaps, broken },
    };
  } finally {
    await Promise.all(workers.map(async (worker) => worker.kill()));
    await producer.close();
    client.disconnect();
    await gateway.end();
    await redis.stop();
  }
}

/** Payouts that were cancelled three days ago: what retention finds. Never to be sent meanwhile. */
async function makeOld(redisUrl: string, first: number): Promise<void> {
  const clock = { ...systemClock, wallNow: () => Date.now() - 3 * 24 * 60 * MINUTE_MS };
  const account = openAccount({ redisUrl, platformId: PLATFORM_ID, clock });
  const payouts = Array.from({ length: OLD_AT_ONCE }, (_, index) => ({ payoutId: `old-${first + index}` }));
  const payment = { paymentId: 1, amount: '1', addressTo: 'old', notBefore: '2099-01-01T00:00:00.000Z' };
  try {
    await account.ledger.enqueue(payouts.map((each) => ({ ...each, ...payment })));
    const actor = { by: 'shop', reason: 'not needed any more' };
    await account.ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...actor });
  } finally {
    await account.close();
  }
}

/** What a process takes, where the system has /proc. */
async function sampleProcess(pid = 0): Promise<Sample> {
  const pages = Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]);
  const rssMb = Math.round((pages * 4_096) / 104_857.6) / 10;
  return { rssMb, fileDescriptors: (await readdir(`/proc/${pid}/fd`)).length };
}

/** Until the signal; what fails, as Redis is away, is tried the next time. */
async function repeat(work: () => Promise<void>, everyMs: number, end: AbortSignal): Promise<void> {
  do await work().catch(() => undefined);
  while (await passes(everyMs, end));
}

/** @returns false when the signal was aborted meanwhile */
async function passes(ms: number, end: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal: end }).catch(() => false);
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
