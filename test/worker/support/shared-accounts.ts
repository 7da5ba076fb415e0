import { Redis } from 'ioredis';
import type { Sandbox } from '../../../src/sandbox/index.js';
import { startOwnRedis } from './own-redis.js';
import { cents, expectPace, isSettled, numbered, openWorld, SECRET_KEY } from './payout-world.js';
import type { WorkerProcess, WorkerProcessOptions } from './worker-process.js';

/** Several accounts in an accounts file, with a Redis of their own, for worker processes that share them. */
export interface SharedAccounts {
  readonly platformIds: readonly number[];
  readonly sandbox: Sandbox;
  readonly redis: Redis;
  readonly dir: string;
  /** What a process needs to work for them. */
  readonly processOptions: Omit<WorkerProcessOptions, 'platformId'>;
  startWorker(options?: Partial<WorkerProcessOptions>): WorkerProcess;
  enqueue(countForEach: number): Promise<void>;
  /** The process that holds each account's lease, by platformId; those of which nobody does are left out. */
  holders(): Promise<ReadonlyMap<number, number>>;
  epochOf(platformId: number): Promise<number>;
  /** Waits for nothing: whether all that was enqueued is completed or, of a process that was killed, unknown. */
  isSettled(countForEach: number): Promise<boolean>;
  expectPromisesKept(): void;
  close(): Promise<void>;
}

export async function openSharedAccounts(count: number): Promise<SharedAccounts> {
  const platformIds = Array.from({ length: count }, (_, index) => 7_001 + index);
  const server = await startOwnRedis();
  const world = await openWorld({ redis: server, platformIds });
  const { sandbox, dir, redisUrl, env } = world;
  const redis = new Redis(redisUrl);
  const environment = await world.writeAccounts(platformIds.map((platformId) => ({ platformId })));
  const producers = platformIds.map((platformId) => world.producerOf(platformId));
  const fields = async (platformId: number): Promise<Record<string, string>> =>
    redis.hgetall(`{payouts:${platformId}}:sender`);
  return {
    ...{ platformIds, sandbox, redis, dir },
    processOptions: {
      ...{ redisUrl, baseUrl: sandbox.url, secretKey: SECRET_KEY, journalDir: env.SEND_JOURNAL_DIR, environment },
    },
    startWorker: (options = {}) => world.startWorker({ environment, ...options }),
    async enqueue(countForEach) {
      for (const producer of producers) await producer.enqueueMany(cents(numbered(countForEach)));
    },
    async holders() {
      const found = await Promise.all(platformIds.map(async (id) => [id, await fields(id)] as const));
      return new Map(
        found.flatMap(([id, { owner = '', released }]) => {
          // The owner of a lease is host, process and a random word.
          const [, pid] = /:(\d+):[^:]*$/.exec(owner) ?? [];
          return released === '1' || pid === undefined ? [] : [[id, Number(pid)] as const];
        }),
      );
    },
    epochOf: async (platformId) => Number((await fields(platformId))['epoch']),
    async isSettled(countForEach) {
      const all = await Promise.all(producers.map(async (producer) => isSettled(producer, countForEach)));
      return all.every(Boolean);
    },
    expectPromisesKept() {
      for (const platformId of platformIds) expectPace(sandbox, platformId);
    },
    async close() {
      await redis.quit();
      await world.close();
      await server.close();
    },
  };
}
