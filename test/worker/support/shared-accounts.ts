import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from './worker-process.js';

/** Several accounts in an accounts file, with a Redis of their own, for worker processes that share them. */
export interface SharedAccounts {
  readonly platformIds: readonly number[];
  readonly sandbox: Sandbox;
  readonly redis: Redis;
  readonly dir: string;
  /** What a process needs to work for them. */
  readonly processOptions: WorkerProcessOptions;
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

const SECRET_KEY = 'k-shared-0123456789';

export async function openSharedAccounts(count: number): Promise<SharedAccounts> {
  const platformIds = Array.from({ length: count }, (_, index) => 7_001 + index);
  const server = await startLocalRedis();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-shared-'));
  const sandbox = await startSandbox({
    accounts: platformIds.map((platformId) => ({ platformId, secretKey: SECRET_KEY })),
    settleAfterMs: 300,
  });
  const redis = new Redis(server.url);
  await writeFile(join(dir, 'key'), SECRET_KEY, { mode: 0o600 });
  const accountsFile = join(dir, 'accounts.json');
  const accounts = platformIds.map((platformId) => ({ platformId, baseUrl: sandbox.url, secretKeyFile: 'key' }));
  await writeFile(accountsFile, JSON.stringify(accounts));
  const producers = platformIds.map((platformId) => new PayoutProducer({ redisUrl: server.url, platformId }));
  const senderField = async (platformId: number, field: string): Promise<string | null> =>
    redis.hget(`{payouts:${platformId}}:sender`, field);
  const processOptions: WorkerProcessOptions = {
    redisUrl: server.url,
    platformId: platformIds[0] ?? 0,
    baseUrl: sandbox.url,
    secretKey: SECRET_KEY,
    journalDir: join(dir, 'journal'),
    environment: { PAYOUT_ACCOUNTS_FILE: accountsFile },
  };
  return {
    platformIds,
    sandbox,
    redis,
    dir,
    processOptions,
    startWorker: (options = {}) => startWorkerProcess({ ...processOptions, ...options }),
    async enqueue(countForEach) {
      const inputs = Array.from({ length: countForEach }, (_, index) => ({
        payoutId: `P-${index}`,
        paymentId: 1,
        amount: '0.01',
        addressTo: `wallet-sharedpayout${index}`,
      }));
      for (const producer of producers) await producer.enqueueMany(inputs);
    },
    async holders() {
      const owners = await Promise.all(
        platformIds.map(async (platformId) => {
          const [owner, released] = await Promise.all([
            senderField(platformId, 'owner'),
            senderField(platformId, 'released'),
          ]);
          return released === '1' ? undefined : pidOf(owner);
        }),
      );
      return new Map(
        platformIds.flatMap((platformId, index) => {
          const pid = owners[index];
          return pid === undefined ? [] : [[platformId, pid] as const];
        }),
      );
    },
    epochOf: async (platformId) => Number(await senderField(platformId, 'epoch')),
    async isSettled(countForEach) {
      const all = await Promise.all(producers.map(async (producer) => producer.stats()));
      return all.every(({ completed, unknown }) => completed + unknown === countForEach);
    },
    expectPromisesKept() {
      for (const platformId of platformIds) {
        const { smallestGapMs, duplicatePayments, blocked } = sandbox.stats(platformId);
        expect({ platformId, blocked, duplicatePayments }).toEqual({
          platformId,
          blocked: false,
          duplicatePayments: [],
        });
        expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
      }
    },
    async close() {
      await Promise.all(producers.map(async (producer) => producer.close()));
      await redis.quit();
      await sandbox.close();
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The owner of a lease is host, process and a random word. */
function pidOf(owner: string | null): number | undefined {
  const [, pid] = /:(\d+):[^:]*$/.exec(owner ?? '') ?? [];
  return pid === undefined ? undefined : Number(pid);
}
