import { appendFile, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { openWorld, SECRET_KEY, type PayoutWorld } from '../../worker/support/payout-world.js';
import { until } from '../../support/until.js';
import { endAllWorkers, type WorkerProcess } from '../../worker/support/worker-process.js';

/** An account whose Redis can be put back to an older copy, or flushed, and what an operator runs then. */
export interface AdoptionRig {
  readonly world: PayoutWorld;
  /** Commands straight to the Redis that runs. */
  readonly redisClient: Redis;
  /** The journal folder of a host; `journal` is that of workers and commands where nobody says otherwise. */
  journalDir(host?: string): string;
  journalFile(host?: string): string;
  readJournal(): Promise<string>;
  /** Makes the present file of the journal full: the next send sets it aside. Only while no worker runs. */
  fillJournal(): Promise<void>;
  startWorker(host?: string): WorkerProcess;
  run(...args: string[]): Promise<CliResult>;
  adopt(...args: string[]): Promise<CliResult>;
  /** A worker of this host sends at least `count` payouts, and ends in good order. */
  sendSome(count: number, host?: string): Promise<void>;
  untilSent(count: number): Promise<void>;
  /** @returns how many requests the gateway had by then */
  untilRefused(worker: WorkerProcess, reason: RegExp): Promise<number>;
  /** The payouts P-1 to P-9 that the gateway paid, in the order of their payments. */
  paid(): { readonly payoutId: string; readonly txhash: string }[];
  /** The payouts of a state, sorted. */
  idsIn(state: 'queued' | 'unknown'): Promise<string[]>;
  copyOfRedis(): Promise<string>;
  /** Puts the server back to how its folder was when the copy was made. */
  putBack(copy: string): Promise<void>;
  close(): Promise<void>;
}

/** Workers reckon with it too; the doubt after which an operator may decide is as long. */
const IN_FLIGHT_MAX_MS = '4000';
const FULL_BYTES = 16 * 1024 * 1024 + 1;
/** A line of which no reader takes notice: its end is that of a line that a crash tore. */
const FILLER = `${'x'.repeat(64 * 1024)} torn\n`;

export async function openAdoption(): Promise<AdoptionRig> {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-adopt-'));
  let redis: LocalRedis = await startLocalRedis({ dir });
  const world = await openWorld({ redis });
  const redisClient = new Redis(redis.url);
  // It is down while its folder is exchanged.
  redisClient.on('error', () => undefined);
  const journalDir = (host = 'journal'): string => join(world.dir, host);
  const journalFile = (host?: string): string => join(journalDir(host), `${world.platformId}.journal`);
  const startWorker = (host?: string): WorkerProcess => world.startWorker({ journalDir: journalDir(host) });
  const arrivals = (): number => world.sandbox.stats().arrivals;
  const untilSent = async (count: number): Promise<void> =>
    until(`${count} payouts arrived`, () => arrivals() >= count);
  const run = async (...args: string[]): Promise<CliResult> =>
    runCli(args, {
      env: {
        REDIS_URL: world.redisUrl,
        GATEWAY_PLATFORM_ID: String(world.platformId),
        GATEWAY_BASE_URL: world.sandbox.url,
        GATEWAY_SECRET_KEY: SECRET_KEY,
        SEND_JOURNAL_DIR: journalDir(),
        IN_FLIGHT_MAX_MS,
      },
    });
  return {
    world,
    redisClient,
    journalDir,
    journalFile,
    readJournal: async () => readFile(journalFile(), 'utf8'),
    fillJournal: async () => appendFile(journalFile(), FILLER.repeat(Math.ceil(FULL_BYTES / FILLER.length))),
    startWorker,
    run,
    adopt: async (...args) => run('adopt-ledger', ...args),
    async sendSome(count, host) {
      const before = arrivals();
      const worker = startWorker(host);
      await untilSent(before + count);
      worker.kill('SIGTERM');
      await worker.ended;
    },
    untilSent,
    async untilRefused(worker, reason) {
      await until('the worker refuses', () => reason.test(worker.log()));
      return arrivals();
    },
    paid: () =>
      world.sandbox
        .payments()
        .map(({ addressTo, txhash }) => ({ payoutId: `P-${/^wallet-p(\d)x/.exec(addressTo)?.[1] ?? '?'}`, txhash })),
    async idsIn(state) {
      const { payouts } = await world.producer.list({ state });
      return payouts.map(({ payoutId }) => payoutId).sort();
    },
    async copyOfRedis() {
      await redis.stop();
      const copy = `${dir}-copy`;
      await cp(dir, copy, { recursive: true });
      redis = await startLocalRedis({ dir, port: redis.port });
      return copy;
    },
    async putBack(copy) {
      await redis.stop();
      await rm(dir, { recursive: true });
      await cp(copy, dir, { recursive: true });
      await rm(copy, { recursive: true });
      redis = await startLocalRedis({ dir, port: redis.port });
    },
    async close() {
      await endAllWorkers();
      redisClient.disconnect();
      await world.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
