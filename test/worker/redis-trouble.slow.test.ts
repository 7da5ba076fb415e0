import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis, type OwnRedis } from './support/own-redis.js';
import {
  expectPromisesKept,
  untilSent,
  untilSettledAfterOutage,
  worldOfTest,
  type PayoutWorld,
} from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

let redis: OwnRedis;
let world: PayoutWorld;
beforeEach(async () => {
  redis = closeAfterTest(await startOwnRedis());
  world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: 400 } });
});

/** A worker has sent some of this many payouts. */
async function sendSome(count: number, sent: number): Promise<WorkerProcess> {
  await world.enqueue(count);
  const worker = world.startWorker();
  await untilSent(world, sent);
  return worker;
}

/** Nothing more is sent, and nothing was twice. */
async function expectStillness(forMs: number): Promise<void> {
  const { arrivals } = world.sandbox.stats();
  await delay(forMs);
  expect(world.sandbox.stats()).toMatchObject({ arrivals, duplicatePayments: [] });
}

async function expectRefused(worker: WorkerProcess, reason: RegExp): Promise<void> {
  await until('the worker refuses', () => reason.test(worker.log()));
  await worker.said('payouts adopt-ledger');
  await expectStillness(4_000);
}

/** Redis starts with a copy of its files, after this many sends that it forgets. */
async function goBack(sent: number): Promise<void> {
  const copy = `${redis.dir}-copy`;
  await cp(redis.dir, copy, { recursive: true });
  await untilSent(world, sent);
  await redis.stop();
  await rm(redis.dir, { recursive: true });
  await rename(copy, redis.dir);
  await redis.startAgain();
}

describe('Redis', () => {
  it.each([
    ['SIGKILL', 500],
    ['SIGTERM', 30_000],
  ] as const)(
    'ended by %s for %i ms: each payout is paid once, with the response that came meanwhile',
    async (...row) => {
      const [signal, ms] = row;
      await sendSome(5, 2);
      process.kill(redis.pid, signal);
      await delay(ms);
      await redis.startAgain();
      await untilSettledAfterOutage(world, 5);
      await expectPromisesKept(world);
      expect((await world.producer.stats()).unknown).toBe(0);
    },
  );

  it('hung for good: SIGTERM still ends the worker with 0', async () => {
    const worker = await sendSome(3, 1);
    process.kill(redis.pid, 'SIGSTOP');
    worker.kill('SIGTERM');
    expect(await Promise.race([worker.ended, delay(45_000)])).toBe(0);
    process.kill(redis.pid, 'SIGCONT');
  });

  it('hung for longer than the lease: the work continues', async () => {
    world.startWorker();
    await sendSome(5, 2);
    process.kill(redis.pid, 'SIGSTOP');
    await delay(6_000);
    process.kill(redis.pid, 'SIGCONT');
    await untilSettledAfterOutage(world, 5);
    await expectPromisesKept(world);
  });

  it('put back to an older copy: the worker refuses, also after its own restart', async () => {
    const worker = await sendSome(5, 1);
    await goBack(3);
    await expectRefused(worker, /older/);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    await expectRefused(world.startWorker(), /older copy of the ledger/);
  });

  it('put back to an older copy: no other host sends, because the first objects', async () => {
    const first = await sendSome(5, 1);
    world.startWorker({ journalDir: join(world.dir, 'other-host') });
    await goBack(3);
    await until('the first refuses', () => /older/.test(first.log()));
    await until('an objection stands', async () => (await world.producer.stats()).objections.length === 1);
    await expectStillness(8_000);
  });
});
