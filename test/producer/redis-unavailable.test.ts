import { beforeEach, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { type Logger, silentLogger } from '../../src/base/logger.js';
import { connectRedis } from '../../src/base/redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { newPlatformId } from '../support/account.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { startOwnRedis, type OwnRedis } from '../worker/support/own-redis.js';
import { payoutInput } from './support/payout-input.js';

let server: OwnRedis;
beforeEach(async () => {
  server = closeAfterTest(await startOwnRedis());
});

const produce = (logger: Logger = silentLogger): PayoutProducer =>
  closeAfterTest(new PayoutProducer({ platformId: newPlatformId(), redisUrl: server.url, logger }));

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

it('a Redis that is not there yet, or not any more, fails calls fast, and they work once it comes', async () => {
  await server.stop();
  expect(await timed(async () => produce().close())).toBeLessThan(2_000);
  const producer = produce();
  const isAccepted = async (payoutId: string): Promise<boolean> =>
    producer.enqueue(payoutInput({ payoutId })).then(
      () => true,
      (error: unknown) => {
        expect(error).toBeInstanceOf(RedisUnavailableError);
        expect(String(error)).toMatch(/check that it runs.*asking again is safe/);
        return false;
      },
    );
  for (const [payoutId, withinMs] of [
    ['p-1', 5_000],
    ['p-2', 7_000],
  ] as const) {
    expect(await timed(async () => expect(isAccepted(payoutId)).resolves.toBe(false))).toBeLessThan(withinMs);
    await server.startAgain();
    await until('it is accepted', async () => isAccepted(payoutId), 10_000);
    await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
    await server.stop();
  }
});

it('a queue that fails after the ledger has the payout: it is accepted, the log says so, and the outbox has it', async () => {
  const warnings: string[] = [];
  const producer = produce({ ...silentLogger, warn: (_, message) => void warnings.push(message) });
  const { platformId } = await producer.stats();
  const admin = connectRedis(server.url, 'commands');
  // The wait list as a wrong type makes BullMQ's script fail, as a Redis that becomes unavailable in between would.
  await admin.set(`{payouts:${platformId}}:withdraw:wait`, 'not a list');
  admin.disconnect();
  expect(await producer.enqueue(payoutInput())).toMatchObject({ created: true });
  await until('it says so', () => warnings.length > 0);
  expect(warnings).toEqual(['job not added yet; the worker will add it']);
  expect(await producer.stats()).toMatchObject({ queued: 1, withoutJob: 1 });
});
