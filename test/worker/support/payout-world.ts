import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { createPayoutWorker, type PayoutWorkerOptions } from '../../../src/control/payout-worker.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { cents, numbered, testRedisUrl } from '../../support/account.js';
import { until } from '../../support/until.js';
import { afterTest, closeAfterTest, makeFolder } from './close-after-test.js';
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from './worker-process.js';

export type PayoutWorld = Awaited<ReturnType<typeof openWorld>>;

export const SECRET_KEY = 'k-test-0123456789';
let nextPlatformId = 100_000 + Math.floor(Math.random() * 1_000_000_000);

export interface PayoutWorldOptions {
  /** @defaultValue the Redis that all tests share */
  readonly redis?: { readonly url: string };
  readonly sandbox?: Partial<Omit<Parameters<typeof startSandbox>[0], 'accounts'>> & { readonly balance?: string };
  readonly platformIds?: readonly number[];
}

export async function openWorld({
  redis,
  platformIds = [(nextPlatformId += 1)],
  sandbox: { balance, ...sandboxOptions } = {},
}: PayoutWorldOptions = {}) {
  const [platformId = 0] = platformIds;
  const redisUrl = redis?.url ?? testRedisUrl();
  const folder = await makeFolder('test');
  const { dir } = folder;
  const sandbox = await startSandbox({
    accounts: platformIds.map((id) => ({ platformId: id, secretKey: SECRET_KEY, balance })),
    settleAfterMs: 300,
    ...sandboxOptions,
  });
  const producers = new Map<number, PayoutProducer>();
  const producerOf = (id: number) => {
    const producer = producers.get(id) ?? new PayoutProducer({ redisUrl, platformId: id });
    producers.set(id, producer);
    return producer;
  };
  const producer = producerOf(platformId);
  const journalDir = join(dir, 'journal');
  const workers: WorkerProcess[] = [];
  return {
    ...{ platformId, redisUrl, account: { platformId, redisUrl }, sandbox, producer, dir, producerOf },
    env: { REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID: String(platformId), SEND_JOURNAL_DIR: journalDir },
    startWorker(options: Partial<WorkerProcessOptions> = {}) {
      const access = { redisUrl, platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, journalDir };
      const worker = startWorkerProcess({ ...access, ...options });
      workers.push(worker);
      return worker;
    },
    async enqueue(count: number, prefix?: string) {
      const payoutIds = numbered(count, prefix);
      await producer.enqueueMany(cents(payoutIds));
      return payoutIds;
    },
    /** Writes an accounts file and its key. @returns what a worker needs to find them */
    async writeAccounts(accounts: readonly object[]) {
      const file = join(dir, 'accounts.json');
      await writeFile(join(dir, 'key'), SECRET_KEY, { mode: 0o600 });
      const filled = accounts.map((account) => ({ baseUrl: sandbox.url, secretKeyFile: 'key', ...account }));
      await writeFile(file, JSON.stringify(filled));
      return { PAYOUT_ACCOUNTS_FILE: file };
    },
    async close() {
      await Promise.all(workers.map(async (worker) => worker.end()));
      await Promise.all([...producers.values()].map(async (each) => each.close()));
      await sandbox.close();
      await folder.close();
    },
  };
}

export async function worldOfTest(options: PayoutWorldOptions = {}) {
  return closeAfterTest(await openWorld(options));
}

/** A worker in this process. It ends with the test. */
export async function openWorkerIn(
  { platformId, redisUrl, sandbox, dir }: PayoutWorld,
  options: Partial<PayoutWorkerOptions> = {},
  account: object = {},
  platformIds: readonly number[] = [platformId],
) {
  const access = { baseUrl: sandbox.url, secretKey: SECRET_KEY, leaseMs: 500, quarantineMs: 0, pollMinMs: 50 };
  const worker = await createPayoutWorker({
    ...(options.connection === undefined && { redisUrl }),
    journalDir: join(dir, 'journal'),
    accounts: platformIds.map((id) => ({ platformId: id, ...access, ...account })),
    ...options,
  });
  afterTest(async () => worker.stop());
  return worker;
}

export const untilLeased = async (worker: WorkerProcess) => worker.said('acquired sender lease');

export async function untilSent({ sandbox }: PayoutWorld, count: number) {
  await until(`${count} payouts arrived`, () => sandbox.stats().arrivals >= count);
}

export async function untilSettled({ producer }: PayoutWorld, count: number) {
  await until(`${count} payouts are settled`, async () => isSettled(producer, count));
}

/** The same where Redis may be unavailable meanwhile. */
export async function untilSettledAfterOutage({ producer }: PayoutWorld, count: number) {
  await until(`${count} payouts are settled`, async () => isSettled(producer, count).catch(() => false));
}

export async function isSettled(producer: PayoutProducer, count: number) {
  const { completed, unknown } = await producer.stats();
  return completed + unknown === count;
}

export async function expectPromisesKept({ sandbox, producer }: PayoutWorld) {
  expectPace(sandbox);
  const { queued, sending } = await producer.stats();
  expect({ queued, sending }).toEqual({ queued: 0, sending: 0 });
}

export function expectPace(sandbox: Sandbox, platformId?: number) {
  const { smallestGapMs, duplicatePayments, blocked } = sandbox.stats(platformId);
  expect({ platformId, blocked, duplicatePayments }).toEqual({ platformId, blocked: false, duplicatePayments: [] });
  if (smallestGapMs !== null) expect(smallestGapMs).toBeGreaterThanOrEqual(1000);
}
