import { Redis } from 'ioredis';
import { startOwnRedis } from './own-redis.js';
import { expectPace, isSettled, openWorld, SECRET_KEY } from './payout-world.js';
import type { WorkerProcessOptions } from './worker-process.js';
import { cents, numbered } from '../../support/account.js';

export type SharedAccounts = Awaited<ReturnType<typeof openSharedAccounts>>;

export async function openSharedAccounts(count: number) {
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
    startWorker: (options: Partial<WorkerProcessOptions> = {}) => world.startWorker({ environment, ...options }),
    async enqueue(countForEach: number) {
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
    async isSettled(countForEach: number) {
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
