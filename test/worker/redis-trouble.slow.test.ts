import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';
import {
  expectPromisesKept,
  openWorld,
  untilSent,
  untilSettledAfterOutage,
  type PayoutWorld,
} from './support/payout-world.js';
import { until } from '../support/until.js';

let dir: string;
let redis: LocalRedis;
let world: PayoutWorld;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-redis-trouble-'));
  redis = await startLocalRedis({ dir });
  world = await openWorld({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: 400 } });
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

async function startAgain(): Promise<void> {
  redis = await startLocalRedis({ dir, port: redis.port });
}

/** Each payout was paid once, and none is unknown. */
async function expectAllPaid(count: number): Promise<void> {
  await untilSettledAfterOutage(world, count);
  await expectPromisesKept(world);
  expect((await world.producer.stats()).unknown).toBe(0);
}

/** Has Redis start with a copy of its files that it has written to since. */
async function goBackTo(copy: string): Promise<void> {
  await redis.stop();
  await rm(dir, { recursive: true });
  await rename(copy, dir);
  await startAgain();
}

async function expectRefused(worker: WorkerProcess, reason: RegExp): Promise<void> {
  await until('the worker refuses', () => reason.test(worker.log()));
  await until('it says what to do', () => worker.log().includes('payouts adopt-ledger'));
  const { arrivals } = world.sandbox.stats();
  await delay(4_000);
  expect(world.sandbox.stats().arrivals).toBe(arrivals);
}

describe('Redis', () => {
  it('ended and started again in the middle: the work continues', async () => {
    await world.enqueue(6);
    world.startWorker();
    await untilSent(world, 2);
    process.kill(redis.pid, 'SIGKILL');
    await delay(500);
    await startAgain();
    await expectAllPaid(6);
  }, 120_000);

  it('unavailable for 30 seconds: the work continues, with the response that came meanwhile', async () => {
    await world.enqueue(4);
    world.startWorker();
    await untilSent(world, 2);
    await redis.stop();
    await delay(30_000);
    await startAgain();
    await expectAllPaid(4);
  }, 180_000);

  it('unavailable for good: SIGTERM still ends the worker with 0', async () => {
    await world.enqueue(3);
    const worker = world.startWorker();
    await untilSent(world, 1);
    await redis.stop();
    await delay(2_000);
    worker.kill('SIGTERM');
    expect(await Promise.race([worker.ended, delay(30_000)])).toBe(0);
    expect(world.sandbox.stats().duplicatePayments).toEqual([]);
  }, 60_000);

  it('hung for good: SIGTERM still ends the worker with 0', async () => {
    await world.enqueue(1);
    const worker = world.startWorker();
    await untilSent(world, 1);
    process.kill(redis.pid, 'SIGSTOP');
    worker.kill('SIGTERM');
    expect(await Promise.race([worker.ended, delay(45_000)])).toBe(0);
    process.kill(redis.pid, 'SIGCONT');
  }, 60_000);

  it('hung for longer than the lease: the work continues', async () => {
    await world.enqueue(5);
    world.startWorker();
    world.startWorker();
    await untilSent(world, 2);
    process.kill(redis.pid, 'SIGSTOP');
    await delay(6_000);
    process.kill(redis.pid, 'SIGCONT');
    await untilSettledAfterOutage(world, 5);
    await expectPromisesKept(world);
  }, 120_000);

  it('flushed: the worker refuses to send and says why and what to do', async () => {
    await world.enqueue(4);
    const worker = world.startWorker();
    await untilSent(world, 2);
    const admin = new Redis(redis.url);
    await admin.flushall();
    await world.enqueue(4);
    await expectRefused(worker, /flushed or exchanged/);
    await admin.quit();
    expect(world.sandbox.stats().duplicatePayments).toEqual([]);
  }, 60_000);

  it('put back to an older copy of its append-only file: the worker refuses, also after its own restart', async () => {
    await world.enqueue(5);
    const worker = world.startWorker();
    await untilSent(world, 1);
    const copy = `${dir}-copy`;
    await cp(dir, copy, { recursive: true });
    await untilSent(world, 3);
    await goBackTo(copy);
    await expectRefused(worker, /older/);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    await expectRefused(world.startWorker(), /older copy of the ledger/);
    expect(world.sandbox.stats().duplicatePayments).toEqual([]);
  }, 120_000);
});

describe('a worker on another host, whose journal has seen nothing', () => {
  it('sends nothing either from an older copy: the worker that remembers objects', async () => {
    await world.enqueue(5);
    const first = world.startWorker();
    await untilSent(world, 1);
    await until('the first is the sender', async () => (await world.producer.stats()).sender !== null);
    world.startWorker({ journalDir: join(world.dir, 'other-host') });
    const copy = `${dir}-copy`;
    await cp(dir, copy, { recursive: true });
    await untilSent(world, 3);
    await goBackTo(copy);
    await until('the first refuses', () => /older/.test(first.log()));
    await until('an objection stands', async () => (await world.producer.stats()).objections.length === 1);
    const { arrivals } = world.sandbox.stats();
    await delay(8_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);
    expect(world.sandbox.stats().duplicatePayments).toEqual([]);
  }, 120_000);
});

describe('a Redis that may forget', () => {
  it('is refused at the start, with what to set, and exit code 2', async () => {
    await redis.stop();
    redis = await startLocalRedis({
      dir,
      port: redis.port,
      args: ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'],
    });
    const worker = world.startWorker();
    expect(await worker.ended).toBe(2);
    expect(worker.log()).toMatch(/may forget.*appendonly yes/s);
    expect(worker.log()).toMatch(/maxmemory-policy noeviction/);
  }, 30_000);

  it('is used when ALLOW_VOLATILE_REDIS says so', async () => {
    await redis.stop();
    redis = await startLocalRedis({ dir, port: redis.port, args: ['--appendonly', 'no'] });
    await world.enqueue(1);
    world.startWorker({ environment: { ALLOW_VOLATILE_REDIS: 'true' } });
    await untilSettledAfterOutage(world, 1);
  }, 60_000);
});
