import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { PayoutProducer, type PayoutProducerOptions } from 'payout-queue';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { completePayouts, holdLedger } from '../ledger-account.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { newAccount, sampleJob, type SamplePayout, samplePayouts } from '../sample-payouts.js';
import { median, secondsOf } from '../statistics.js';
import { keySigner } from '../../src/control/keys/signing-key.js';

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const JOBS_PER_BULK = 1_000;
const AT_ONCE = 50;

/**
 * Payouts a second into the queue, against BullMQ alone adding the same jobs, in turns on the same Redis; and the memory
 * that a payout takes there.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const sizes = quick
    ? { one: 200, many: 2_000, file: 5_000, iterations: 1, fileIterations: 1 }
    : { one: 1_000, many: 20_000, file: 100_000, iterations: 5, fileIterations: 3 };
  const redis = await startMeasuredRedis();
  try {
    const measure = async (way: Omit<Comparison, 'iterations'>, iterations = sizes.iterations) => {
      const row = await compare({ ...way, iterations }, redis);
      note(`${way.name}: done`);
      return row;
    };
    const add = { against: 'add', payouts: sizes.one };
    const bulk = { against: 'addBulk', reference: addBulk, payouts: sizes.many };
    const file = { against: 'enqueueMany', reference: enqueueMany, payouts: sizes.file };
    const atOnceName = `enqueue, ${AT_ONCE} at a time`;
    const each = await measure({
      ...add,
      name: 'enqueue, one after the other',
      reference: addEach,
      own: enqueueEach,
    });
    const atOnce = await measure({
      ...add,
      name: atOnceName,
      reference: addAtOnce,
      own: enqueueAtOnce,
      payouts: sizes.one * 4,
    });
    const many = await measure({ ...bulk, name: 'enqueueMany', own: enqueueMany });
    const signed = await measure({ ...bulk, name: 'enqueueMany, signed', own: enqueueSigned });
    const imported = await measure({ ...file, name: 'payouts import', own: importFile }, sizes.fileIterations);
    const rows = [each, atOnce, many, signed, imported];
    const memory = {
      queuedBytes: await onFreshRedis(async (fresh) => measureQueued(fresh, 20_000)),
      signedBytes: await onFreshRedis(async (fresh) => measureQueued(fresh, 20_000, SIGNING)),
      ...(await onFreshRedis(async (fresh) => measureCompleted(fresh, 20_000))),
    };
    return {
      rows,
      memory,
      figures: [
        figure('enqueue one after the other, as a part of raw add', each.ratio, { atLeast: 0.72 }),
        figure(`enqueue ${AT_ONCE} at a time, as a part of raw add`, atOnce.ratio, { atLeast: 0.5 }),
        figure('enqueueMany, as a part of raw addBulk', many.ratio, { atLeast: 0.7 }),
        figure('enqueueMany signed, as a part of raw addBulk', signed.ratio, { atLeast: 0.45 }),
        figure('import, as a part of enqueueMany', imported.ratio, { atLeast: 0.9 }),
        figure('Redis bytes of a queued payout with its job', memory.queuedBytes, { atMost: 1_536 }),
        figure('the same of a signed payout', memory.signedBytes, { atMost: 1_536 }),
        figure('Redis bytes of a completed payout', memory.completedBytes, { atMost: 800 }),
      ],
    };
  } finally {
    await redis.close();
  }
}

/** @returns the seconds until the payouts are in the queue */
type Way = (payouts: readonly SamplePayout[], redis: MeasuredRedis) => Promise<number>;

interface Comparison {
  readonly name: string;
  readonly payouts: number;
  readonly iterations: number;
  readonly own: Way;
  readonly against: string;
  readonly reference: Way;
}

/** In turns, because other load on the machine then affects both; each iteration gives a ratio, and their median is the result. */
async function compare(
  { name, against, reference, own, payouts: count, iterations }: Comparison,
  redis: MeasuredRedis,
) {
  const rates: Record<'referencePerSecond' | 'perSecond' | 'ratio', number>[] = [];
  for (let iteration = 0; iteration < iterations; iteration += 1) {
    const payouts = samplePayouts(count);
    const referencePerSecond = count / (await reference(payouts, redis));
    const perSecond = count / (await own(payouts, redis));
    rates.push({ referencePerSecond, perSecond, ratio: perSecond / referencePerSecond });
  }
  const medianOf = (key: keyof (typeof rates)[number]): number => median(rates.map((rate) => rate[key]));
  return {
    way: name,
    payouts: count,
    iterations,
    perSecond: medianOf('perSecond'),
    against,
    itsPerSecond: medianOf('referencePerSecond'),
    ratio: medianOf('ratio'),
  };
}

/** @returns the seconds that `work` took with a queue of its own */
async function withQueue(redis: MeasuredRedis, work: (queue: Queue) => Promise<void>): Promise<number> {
  const queue = new Queue('withdraw', { connection: redis.address, prefix: `raw:${newAccount().platformId}` });
  await queue.waitUntilReady();
  const seconds = await secondsOf(async () => work(queue));
  await queue.close();
  return seconds;
}

/** @returns the seconds that `work` took with an account of its own, until the last job was in the queue */
async function withProducer(
  redis: MeasuredRedis,
  work: (producer: PayoutProducer) => Promise<void>,
  options: Partial<PayoutProducerOptions> = {},
): Promise<number> {
  const { platformId } = newAccount();
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, ...options });
  await producer.stats();
  const seconds = await secondsOf(async () => {
    await work(producer);
    // `enqueue` answers before its job is added.
    await producer.close();
  });
  await insistOnJobs(redis, platformId);
  return seconds;
}

async function insistOnJobs(redis: MeasuredRedis, platformId: number): Promise<void> {
  const left = await redis.client.zcard(`{payouts:${platformId}}:outbox`);
  if (left > 0) throw new Error(`${left} payouts have no job`);
}

async function addEach(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return withQueue(redis, async (queue) => {
    for (const payout of payouts) await add(queue, payout);
  });
}

async function enqueueEach(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return withProducer(redis, async (producer) => {
    for (const payout of payouts) await producer.enqueue(payout);
  });
}

async function addAtOnce(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return withQueue(redis, async (queue) => inLanes(payouts, async (payout) => add(queue, payout)));
}

async function enqueueAtOnce(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return withProducer(redis, async (producer) => inLanes(payouts, async (payout) => producer.enqueue(payout)));
}

async function add(queue: Queue, payout: SamplePayout): Promise<void> {
  const { name, data, opts } = sampleJob(payout);
  await queue.add(name, data, opts);
}

async function inLanes(
  payouts: readonly SamplePayout[],
  work: (payout: SamplePayout) => Promise<unknown>,
): Promise<void> {
  const waiting = payouts.values();
  const lane = async (): Promise<void> => {
    for (const payout of waiting) await work(payout);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

async function addBulk(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return withQueue(redis, async (queue) => {
    for (let start = 0; start < payouts.length; start += JOBS_PER_BULK) {
      await queue.addBulk(payouts.slice(start, start + JOBS_PER_BULK).map(sampleJob));
    }
  });
}

async function enqueueMany(
  payouts: readonly SamplePayout[],
  redis: MeasuredRedis,
  options: Partial<PayoutProducerOptions> = {},
): Promise<number> {
  return withProducer(
    redis,
    async (producer) => {
      const { created } = await producer.enqueueMany(payouts);
      if (created !== payouts.length) throw new Error(`${created} of ${payouts.length} payouts were created`);
    },
    options,
  );
}

const { privateKey } = generateKeyPairSync('ed25519');
const SIGNING = { signer: keySigner('bench', privateKey), audience: 'bench' };

async function enqueueSigned(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  return enqueueMany(payouts, redis, SIGNING);
}

/** The real command, the start of its process included. */
async function importFile(payouts: readonly SamplePayout[], redis: MeasuredRedis): Promise<number> {
  const { platformId } = newAccount();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-bench-'));
  const file = join(dir, 'payouts.csv');
  const lines = payouts.map(({ payoutId, paymentId, amount, addressTo }) =>
    [payoutId, paymentId, amount, addressTo].join(','),
  );
  await writeFile(file, `payout_id,payment_id,amount,address_to\n${lines.join('\n')}\n`);
  const seconds = await secondsOf(async () => {
    const child = spawn(process.execPath, [CLI, 'import', file, '--yes', '--json'], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: process.env['PATH'], REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(platformId) },
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`payouts import ended with code ${code ?? 'none'}`);
  });
  await rm(dir, { recursive: true });
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  const { queued } = await producer.stats();
  await producer.close();
  if (queued !== payouts.length) throw new Error(`${queued} of ${payouts.length} payouts were imported`);
  return seconds;
}

/**
 * Where others left many keys, their table may grow within the measurement: 2 MB for 131,072 of them. Each measurement
 * closes its connection first, whose buffers are as long as what it sent at once.
 */
async function onFreshRedis<Result>(measure: (redis: MeasuredRedis) => Promise<Result>): Promise<Result> {
  const redis = await startMeasuredRedis();
  try {
    return await measure(redis);
  } finally {
    await redis.close();
  }
}

/** With its job, its place in the index and its event. */
async function measureQueued(
  redis: MeasuredRedis,
  count: number,
  options: Partial<PayoutProducerOptions> = {},
): Promise<number> {
  const { platformId } = newAccount();
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, ...options });
  await producer.enqueueMany(samplePayouts(100, 'first'));
  const before = await redis.usedMemory();
  await producer.enqueueMany(samplePayouts(count));
  await producer.close();
  return ((await redis.usedMemory()) - before) / count;
}

/** Through the scripts of the ledger, with its transaction and all its events. BullMQ keeps a fixed number of finished jobs. */
async function measureCompleted(redis: MeasuredRedis, count: number) {
  const account = await holdLedger(redis.url, newAccount().platformId);
  await completePayouts(account, samplePayouts(100, 'first'));
  const { events } = account.ledger.connection.keys;
  const readEventBytes = async () => Number(await redis.client.memory('USAGE', events, 'SAMPLES', 0));
  const before = { memory: await redis.usedMemory(), events: await readEventBytes() };
  await completePayouts(account, samplePayouts(count));
  const eventBytes = (await readEventBytes()) - before.events;
  await account.close();
  const bytes = (await redis.usedMemory()) - before.memory;
  return { completedBytes: bytes / count, ofThemEvents: eventBytes / count };
}
