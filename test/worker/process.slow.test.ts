import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { cents, numbered } from '../support/account.js';
import { runCli } from '../support/cli.js';
import {
  loggerWithThrowingChildren,
  throwingLogger,
  throwingObserver,
  throwingTelemetry,
} from '../support/throwing-watchers.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import {
  expectPromisesKept,
  openWorkerIn,
  type PayoutWorld,
  untilLeased,
  untilSent,
  untilSettled,
  untilSettledAfterOutage,
  worldOfTest,
} from './support/payout-world.js';
import { startWatchedWorker } from './support/watched-worker.js';

it('the first worker sends at once where someone states that the account is new', async () => {
  const world = await worldOfTest();
  await world.enqueue(2);
  const worker = world.startWorker({ environment: { LEASE_MS: '15000', TAKEOVER_QUARANTINE_MS: '5000' } });
  await until('it waits', async () => (await worker.get('/readyz')).body.includes('standby'));
  expect(world.sandbox.arrivals()).toEqual([]);
  const statedAt = performance.now();
  const state = async () => runCli(['new-account', '--yes', '--reason', 'first deployment'], { env: world.env });
  expect(await state()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Noted: account \d+ is new/) });
  await untilSent(world, 1);
  expect(performance.now() - statedAt).toBeLessThan(15_000);
  await untilLeased(worker);
  await untilSettled(world, 2);
  await expectPromisesKept(world);
});

it('SIGTERM waits for the response under way, begins no new send, and exits 0', async () => {
  const world = await worldOfTest({ sandbox: { latencyAfterMs: 1_500 } });
  await world.enqueue(3);
  const worker = world.startWorker();
  await untilSent(world, 1);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(world.sandbox.stats().arrivals).toBe(1);
  expect(await world.producer.stats()).toMatchObject({ queued: 2, in_progress: 1, unknown: 0, sender: null });
});

it('SIGTERM a second signal ends at once, and what was under way becomes unknown', async () => {
  const world = await worldOfTest({ sandbox: { latencyAfterMs: 20_000 } });
  await world.enqueue(1);
  const worker = world.startWorker();
  await untilSent(world, 1);
  worker.kill('SIGTERM');
  await delay(300);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  world.startWorker();
  await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
  expect(world.sandbox.stats().arrivals).toBe(1);
});

const AILING_DISK = new URL('../told/ailing-disk.mjs', import.meta.url).href;

it('SIGTERM ends a worker whose disk hangs; a host with another disk sends its payout', async () => {
  const world = await worldOfTest();
  const control = join(world.dir, 'disk');
  await writeFile(control, 'well');
  execFileSync('mkfifo', [`${control}.pipe`]);
  const environment = { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control };
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  await world.enqueue(1, 'FIRST');
  await untilSettled(world, 1);
  await writeFile(control, 'hang');
  await world.enqueue(2);
  await until('it begins', async () => (await world.producer.get('P-1'))?.state === 'sending');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  expect(worker.log()).toContain('worker stopped');
  expect((await world.producer.get('P-1'))?.state).toBe('queued');
  world.startWorker({ journalDir: join(world.dir, 'other-journal') });
  await untilSettled(world, 3);
  expect(await world.producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  expect((await world.producer.get('P-1'))?.attempt).toBe(2);
});

const cannotBeMade = (): never => {
  throw new Error('no observer today');
};

it.each([
  ['a logger', { logger: throwingLogger }],
  ['the children of a logger', { logger: loggerWithThrowingChildren }],
  ['an observer', { observe: () => throwingObserver }],
  ['the making of an observer', { observe: cannotBeMade }],
  ['telemetry', { telemetry: throwingTelemetry }],
])('what a producer enqueues whose watchers throw is paid once where %s of a worker does', async (_, watchers) => {
  const world = await worldOfTest();
  await openWorkerIn(world, watchers);
  const thrown = { logger: throwingLogger, telemetry: throwingTelemetry };
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...thrown }));
  await producer.enqueueMany(cents(numbered(2)));
  await until('all completed', async () => (await world.producer.stats()).completed === 2);
  for (const payoutId of numbered(2)) expect((await world.producer.get(payoutId))?.txhash).toMatch(/^[0-9a-f]{64}$/);
  await expectPromisesKept(world);
  expect((await world.producer.stats()).sender?.epoch).toBe(1);
});

async function sendSome(count: number, sent: number) {
  const redis = closeAfterTest(await startOwnRedis());
  const world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: 400 } });
  await world.enqueue(count);
  const worker = world.startWorker();
  await untilSent(world, sent);
  return { redis, world, worker };
}

async function expectAllPaid(world: PayoutWorld, count: number) {
  await untilSettledAfterOutage(world, count);
  await expectPromisesKept(world);
}

it.each([
  ['SIGKILL', 500],
  ['SIGTERM', 30_000],
] as const)('where %s ends Redis for %i ms, each payout is paid once, and no response is lost', async (signal, ms) => {
  const { redis, world } = await sendSome(5, 2);
  process.kill(redis.pid, signal);
  await delay(ms);
  await redis.startAgain();
  await expectAllPaid(world, 5);
  expect((await world.producer.stats()).unknown).toBe(0);
});

it('where Redis hangs for good, SIGTERM still ends the worker with 0', async () => {
  const { redis, worker } = await sendSome(3, 1);
  process.kill(redis.pid, 'SIGSTOP');
  worker.kill('SIGTERM');
  expect(await Promise.race([worker.ended, delay(45_000)])).toBe(0);
  process.kill(redis.pid, 'SIGCONT');
});

it.each([false, true])('a Redis that may forget gets a send only where that is allowed: %s', async (allowed) => {
  const redis = closeAfterTest(await startOwnRedis());
  const worker = { allowVolatileRedis: allowed };
  const { enqueue, metric, producer, readyz, sandbox } = await startWatchedWorker({ redis, worker });
  const untilArrived = async (count: number) => until(`${count} are sent`, () => sandbox.stats().arrivals === count);
  await enqueue('A');
  await untilArrived(1);
  await redis.stop();
  await redis.startAgain(['--appendfsync', 'no']);
  await until('it is enqueued', async () => (await enqueue('B').catch(() => 'not yet')) === undefined);
  if (allowed) return untilArrived(2);
  await until('it is not ready', async () => JSON.stringify(await readyz()).includes('appendfsync is no'));
  expect(await readyz()).toMatchObject([503, { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }] }]);
  await delay(1_500);
  expect(await producer.get('B')).toMatchObject({ state: 'queued', attempt: 0 });
  expect(sandbox.stats().arrivals).toBe(1);
  expect([await metric('payouts_sending_refused'), await metric('payouts_lease_held')]).toEqual([0, 1]);
  const admin = new Redis(redis.url);
  await admin.config('SET', 'appendfsync', 'always');
  await admin.quit();
  await untilArrived(2);
  expect((await producer.stats()).sender?.epoch).toBe(1);
});
