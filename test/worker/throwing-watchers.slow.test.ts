import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Logger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startHealthServer } from '../../src/worker/monitoring/health-server.js';
import { createPayoutWorker, type PayoutWorker, type PayoutWorkerOptions } from '../../src/control/payout-worker.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import {
  loggerWithThrowingChildren,
  throwingLogger,
  throwingObserver,
  throwingTelemetry,
} from '../support/throwing-watchers.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from './support/payout-world.js';
import { until } from '../support/until.js';

const SECRET_KEY = 'k-test-0123456789';

let world: PayoutWorld;
const workers: PayoutWorker[] = [];

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map(async (worker) => worker.stop()));
  await world.close();
});

/** A worker in this process, for this test's account. */
async function startWorker(watchers: Partial<PayoutWorkerOptions>): Promise<PayoutWorker> {
  const { platformId, redisUrl, sandbox, dir } = world;
  const worker = await createPayoutWorker({
    redisUrl,
    journalDir: `${dir}/journal`,
    accounts: [
      { platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, leaseMs: 1_500, quarantineMs: 500, pollMinMs: 100 },
    ],
    ...watchers,
  });
  workers.push(worker);
  return worker;
}

async function untilAllCompleted(payoutIds: readonly string[]): Promise<void> {
  await until('all completed', async () => (await world.producer.stats()).completed === payoutIds.length);
  for (const payoutId of payoutIds) {
    expect((await world.producer.get(payoutId))?.txhash).toMatch(/^[0-9a-f]{64}$/);
  }
  await expectPromisesKept(world);
}

async function readEpoch(): Promise<number | undefined> {
  return (await world.producer.stats()).sender?.epoch;
}

function cannotBeMade(): never {
  throw new Error('no observer today');
}

describe.each<[string, Partial<PayoutWorkerOptions>]>([
  ['a logger whose every call throws', { logger: throwingLogger }],
  ['a logger whose children throw', { logger: loggerWithThrowingChildren }],
  ['an observer that throws', { observe: () => throwingObserver }],
  ['an observer that cannot be made', { observe: cannotBeMade }],
  ['telemetry that throws', { telemetry: throwingTelemetry }],
])('a worker with %s', (_name, watchers) => {
  it('pays every payout once and records its txhash', async () => {
    const payoutIds = await world.enqueue(2);
    await startWorker(watchers);
    await untilAllCompleted(payoutIds);
    expect(await readEpoch()).toBe(1);
  });
});

it('a standby whose logger throws takes the lease over once, and sends', async () => {
  const first = await startWorker({});
  await until('there is a sender', async () => (await readEpoch()) === 1);
  await startWorker({ logger: throwingLogger });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  expect(await readEpoch()).toBe(1);

  await first.stop();
  await untilAllCompleted(await world.enqueue(2));
  expect(await readEpoch()).toBe(2);
});

describe.each<[string, Logger]>([
  ['whose every call throws', throwingLogger],
  ['whose children throw', loggerWithThrowingChildren],
])('a producer with telemetry that throws and a logger %s', (_name, logger) => {
  it('enqueues, and the worker has a job at once', async () => {
    const { platformId, redisUrl } = world;
    const producer = new PayoutProducer({ platformId, redisUrl, logger, telemetry: throwingTelemetry });
    await producer.enqueue({ payoutId: 'P-1', paymentId: 1, amount: '0.01', addressTo: 'wallet-thrown' });
    await until('it has a job', async () => (await world.producer.stats()).withoutJob === 0);
    expect(await world.producer.stats()).toMatchObject({ queued: 1 });
    expect(await producer.cancel('P-1')).toMatchObject({ state: 'cancelled' });
    await producer.close();
  });
});

it('a health server whose logger throws still responds that something is wrong', async () => {
  const health = await startHealthServer({
    host: '127.0.0.1',
    port: 0,
    metrics: createWorkerMetrics({ version: '1' }),
    accounts: () => {
      throw new Error('no accounts');
    },
    logger: throwingLogger,
  });
  const { status } = await fetch(`${health.url}/metrics`);
  await health.close();
  expect(status).toBe(500);
});
