import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from '../../support/until.js';
import { Random } from '../../doubles/random.js';
import { PLATFORM_ID, SECRET_KEY } from '../chaos/account.js';
import { Gateway } from '../chaos/gateway.js';
import { RedisServer } from '../chaos/redis-server.js';
import { REAL } from '../chaos/timing.js';
import { findBroken } from '../chaos/verdict.js';
import { WorkerHost } from '../chaos/worker-host.js';
import { passes, troubleRedis, troubleWorkers } from './mishaps.js';
import { sampleRedis, sampleWorker, type Sample, type WorkerSample } from './sample.js';
import { Shop } from './shop.js';

export interface SoakOptions {
  readonly durationMs: number;
  readonly seed: number;
  /** An empty folder for data and logs. */
  readonly dir: string;
  /** Where samples are written as they are taken. */
  readonly out: string;
  readonly note: (line: string) => void;
}

/** Something that happened, for the picture. Seconds since the start. */
export interface Mark {
  readonly at: number;
  readonly what: string;
}

export interface SoakResult {
  readonly hours: number;
  readonly payouts: number;
  readonly states: Readonly<Record<string, number>>;
  readonly withdrawals: number;
  readonly smallestGapMs: number | null;
  readonly oldRemoved: number;
  /** Of the worker that was never ended: its first and its last memory, MB, and the most file descriptors. */
  readonly rssMb: readonly [number, number];
  readonly fileDescriptors: number;
  readonly samples: readonly Sample[];
  /** Each gap between two withdrawals, ms, and when it ended. */
  readonly gaps: readonly { readonly at: number; readonly gapMs: number }[];
  readonly marks: readonly Mark[];
  /** What was broken, in sentences. */
  readonly broken: readonly string[];
}

const SAMPLE_EVERY_MS = 30_000;
const DRAINED_WITHIN_MS = 10 * 60_000;
const REMOVED_WITHIN_MS = 3 * 60_000;
const NAMES = ['worker-1', 'worker-2', 'worker-3'] as const;
/** After the first tenth of a run: the process has seen everything once. */
const GROWTH_ALLOWED_MB = 60;
const DESCRIPTORS_ALLOWED = 100;

/** Runs for a while, and judges what happened. Ends everything that it started. */
export async function runSoak({ durationMs, seed, dir, out, note }: SoakOptions): Promise<SoakResult> {
  const startedAt = performance.now();
  const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10;
  const broken: string[] = [];
  const marks: Mark[] = [];
  const mark = (what: string): void => {
    marks.push({ at: seconds(), what });
    note(`${seconds().toFixed(1).padStart(9)} s  ${what}`);
  };
  const redis = await RedisServer.start(dir, mark);
  const gateway = await Gateway.start({ seed, timing: REAL, signed: false }, dir);
  const workers = NAMES.map((name) => startWorker(name, { redis, gateway, dir, broken }));
  const shop = new Shop(redis.url);
  const client = new Redis(redis.url, { maxRetriesPerRequest: 1 });
  client.on('error', () => undefined);
  const samples: Sample[] = [];
  const ended = new AbortController();
  const sampling = keepSampling();
  try {
    const timer = setTimeout(() => {
      ended.abort();
    }, durationMs);
    const end = ended.signal;
    const random = new Random(seed);
    const mishaps = { workers, redis, note: mark, end };
    const [old] = await Promise.all([
      shop.keepAgeing(end),
      shop.keepOrdering(end),
      troubleWorkers({ ...mishaps, random }),
      troubleRedis({ ...mishaps, random: new Random(seed + 1) }),
    ]);
    clearTimeout(timer);
    mark('the faults end');
    const open = async (): Promise<number> => shop.countOpen().catch(() => Infinity);
    await until('everything has drained', async () => (await open()) === 0, DRAINED_WITHIN_MS);
    const isRemoved = async (): Promise<boolean> => (await shop.countOld(client)) === 0;
    await until('the old payouts were removed', isRemoved, REMOVED_WITHIN_MS).catch((error: unknown) => {
      broken.push((error as Error).message);
    });
    await Promise.all(workers.map(async (worker) => worker.endInGoodOrder()));
    const payouts = await shop.readPayouts();
    const book = await gateway.readBook();
    broken.push(...findBroken(book, payouts, REAL.minGapMs));
    const first = book.arrivals[0]?.atMs ?? 0;
    const states: Record<string, number> = {};
    for (const payout of payouts.values()) states[payout?.state ?? 'gone'] = (states[payout?.state ?? 'gone'] ?? 0) + 1;
    // Each worker that was killed, or stopped for good, can leave one.
    if ((states['unknown'] ?? 0) > marks.length) broken.push(`${states['unknown'] ?? 0} payouts became unknown`);
    const own = samples.flatMap(({ workers: all }) => all.filter(({ name }) => name === NAMES[0]));
    broken.push(...findGrowth(own));
    return {
      ...{ hours: durationMs / 3_600_000, payouts: payouts.size, states },
      ...{ withdrawals: book.arrivals.length, smallestGapMs: book.stats.smallestGapMs, oldRemoved: old },
      rssMb: [settled(own)[0]?.rssMb ?? 0, own.at(-1)?.rssMb ?? 0],
      fileDescriptors: Math.max(0, ...own.map(({ fileDescriptors }) => fileDescriptors)),
      samples,
      gaps: book.arrivals.flatMap(({ atMs, gapMs }) => (gapMs === null ? [] : [{ at: (atMs - first) / 1_000, gapMs }])),
      ...{ marks, broken },
    };
  } finally {
    ended.abort();
    await sampling;
    await Promise.all(workers.map(async (worker) => worker.kill()));
    await shop.close();
    client.disconnect();
    await gateway.end();
    await redis.stop();
  }

  async function keepSampling(): Promise<void> {
    do {
      const found = await Promise.all(workers.map(async ({ name, pid }) => sampleWorker(name, pid)));
      const ofRedis = await sampleRedis(client);
      if (ofRedis === undefined) continue;
      const sample = { at: seconds(), workers: found.filter((each) => each !== undefined), ...ofRedis };
      samples.push(sample);
      await appendFile(join(out, 'samples.jsonl'), `${JSON.stringify(sample)}\n`);
    } while (await passes(SAMPLE_EVERY_MS, ended.signal));
  }
}

interface WorkerSurroundings {
  readonly redis: RedisServer;
  readonly gateway: Gateway;
  readonly dir: string;
  readonly broken: string[];
}

/** A worker with the default settings, and a journal folder that all share. */
function startWorker(name: string, { redis, gateway, dir, broken }: WorkerSurroundings): WorkerHost {
  return new WorkerHost({
    name,
    environment: {
      REDIS_URL: redis.url,
      GATEWAY_PLATFORM_ID: String(PLATFORM_ID),
      GATEWAY_BASE_URL: gateway.url,
      GATEWAY_SECRET_KEY: SECRET_KEY,
      SEND_JOURNAL_DIR: join(dir, 'journal'),
      PAYOUT_RETENTION_DAYS: '1',
      HEALTH_PORT: '0',
    },
    logFile: join(dir, `${name}.log`),
    onDefect: (defect) => void broken.push(defect),
  });
}

function settled(samples: readonly WorkerSample[]): readonly WorkerSample[] {
  return samples.slice(Math.floor(samples.length / 10));
}

function findGrowth(samples: readonly WorkerSample[]): string[] {
  const [first, last] = [settled(samples)[0], samples.at(-1)];
  const broken: string[] = [];
  const growthMb = (last?.rssMb ?? 0) - (first?.rssMb ?? 0);
  if (growthMb > GROWTH_ALLOWED_MB) broken.push(`the memory of ${NAMES[0]} grew by ${growthMb.toFixed(1)} MB`);
  const most = Math.max(0, ...samples.map(({ fileDescriptors }) => fileDescriptors));
  if (most > DESCRIPTORS_ALLOWED) broken.push(`${NAMES[0]} had ${most} file descriptors`);
  return broken;
}
