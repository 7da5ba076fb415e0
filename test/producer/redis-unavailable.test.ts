import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { type Logger, silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { connectRedis } from '../../src/base/redis.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';

let port: number;
let server: LocalRedis | undefined;
let producer: PayoutProducer;

beforeEach(async () => {
  port = await findFreePort();
});

afterEach(async () => {
  await producer.close();
  await server?.stop();
  server = undefined;
});

async function start(): Promise<void> {
  server = await startLocalRedis({ port });
}

function produce(logger: Logger = silentLogger): PayoutProducer {
  return new PayoutProducer({ platformId: newPlatformId(), redisUrl: `redis://127.0.0.1:${port}`, logger });
}

/** Redis comes back in its own time: asks again until it has, at most 10 s. */
async function untilRecovered<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (const startedAt = performance.now(); ;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RedisUnavailableError) || performance.now() - startedAt > 10_000) throw error;
    }
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

it('a Redis that is unavailable fails fast when it never was there, and works once it comes', async () => {
  producer = produce();
  const ms = await timed(async () => {
    const attempt = producer.enqueue(payoutInput());
    await expect(attempt).rejects.toBeInstanceOf(RedisUnavailableError);
    await expect(attempt).rejects.toThrow(/check that it runs.*asking again is safe/);
  });
  expect(ms).toBeLessThan(5_000);
  await start();
  expect(await untilRecovered(() => producer.enqueue(payoutInput()))).toMatchObject({ payoutId: 'p-1' });
  await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
});

it('a Redis that is unavailable fails fast when it becomes unavailable, and recovers', async () => {
  await start();
  producer = produce();
  await producer.enqueue(payoutInput());
  await server?.stop();
  const again = async () => producer.enqueueMany([payoutInput({ payoutId: 'p-2' })]);
  expect(await timed(async () => expect(again()).rejects.toBeInstanceOf(RedisUnavailableError))).toBeLessThan(7_000);
  await start();
  expect(await untilRecovered(again)).toMatchObject({ created: 1 });
});

it('a Redis that is unavailable closes at once while it was never there', async () => {
  producer = produce();
  expect(await timed(() => producer.close())).toBeLessThan(2_000);
});

describe('a queue that fails after the ledger has the payout', () => {
  it('accepts the payout, says so in the log, and leaves it to the outbox', async () => {
    await start();
    const warnings: string[] = [];
    producer = produce({ ...silentLogger, warn: (_, message) => void warnings.push(message) });
    const { platformId } = await producer.stats();
    const admin = connectRedis(server?.url ?? '', 'commands');
    // The wait list as a wrong type makes BullMQ's script fail, as a Redis that becomes unavailable in between would.
    await admin.set(`{payouts:${platformId}}:withdraw:wait`, 'not a list');
    admin.disconnect();
    expect(await producer.enqueue(payoutInput())).toMatchObject({ created: true });
    await until('it says so', () => warnings.length > 0);
    expect(warnings).toEqual(['job not added yet; the worker will add it']);
    expect(await producer.stats()).toMatchObject({ queued: 1, withoutJob: 1 });
  });
});
