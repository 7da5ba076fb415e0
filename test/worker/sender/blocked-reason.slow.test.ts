import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { endAllWorkers } from '../support/worker-process.js';
import { openWorld, type PayoutWorld } from '../support/payout-world.js';
import { until } from '../../support/until.js';

let world: PayoutWorld;
let redis: RedisClient;
let ledger: PayoutLedger;

beforeEach(async () => {
  world = await openWorld();
  redis = connectRedis(world.redisUrl, 'commands');
  ledger = new PayoutLedger(connectLedger(redis, world.platformId));
});

afterEach(async () => {
  await endAllWorkers();
  await closeRedis(redis);
  await world.close();
});

async function untilPaused(): Promise<string> {
  await until('the account is paused', async () => (await world.producer.stats()).paused);
  return (await world.producer.stats()).pausedReason ?? '';
}

describe('the account pauses', () => {
  it('when the gateway says that it is blocked; later payouts stay queued until an operator resumes', async () => {
    world.sandbox.addFaults([{ kind: 'block', times: 1 }]);
    await world.enqueue(3);
    const worker = world.startWorker();
    expect(await untilPaused()).toMatch(/looks like a block.*blocked/i);
    await until('the log says so', () => worker.log().includes('the account is paused'));
    expect(await world.producer.stats()).toMatchObject({ queued: 2, rejected: 1 });
    const { arrivals } = world.sandbox.stats();
    expect(arrivals).toBe(1);

    await ledger.resume('tester', 'unblocked');
    await until('the rest is completed', async () => (await world.producer.stats()).completed === 2);
  }, 60_000);

  it.each([
    ['HTTP 429, whatever the text', { kind: 'rate-429' } as const, /looks like a rate limit: too many requests/],
    ['words of another language', { kind: 'reject', message: 'Konto gesperrt' } as const, /looks like a block: Konto/],
  ])(
    'at the first response that says so: %s',
    async (_name, fault, reason) => {
      world.sandbox.addFaults([fault]);
      await world.enqueue(3);
      world.startWorker();
      expect(await untilPaused()).toMatch(reason);
      expect(await world.producer.stats()).toMatchObject({ queued: 2, rejected: 1 });
    },
    60_000,
  );

  it('at the first signature that the gateway does not accept, as after a change of the key', async () => {
    await world.enqueue(3);
    world.startWorker({ secretKey: 'k-of-yesterday' });
    expect(await untilPaused()).toBe("the gateway's response looks like wrong credentials: wrong signature");
    expect(await world.producer.stats()).toMatchObject({ queued: 2, rejected: 1 });
  }, 60_000);

  it('after five rejections in a row', async () => {
    world.sandbox.addFaults([{ kind: 'reject', message: 'not today' }]);
    await world.enqueue(7);
    world.startWorker();
    expect(await untilPaused()).toMatch(/5 rejections in a row.*not today/);
    expect(await world.producer.stats()).toMatchObject({ queued: 2, rejected: 5 });
  }, 60_000);

  it('after two sends in a row without a trustworthy response', async () => {
    world.sandbox.addFaults([{ kind: 'html-502' }]);
    await world.enqueue(4);
    world.startWorker();
    expect(await untilPaused()).toMatch(/2 sends in a row without a trustworthy response/);
    expect(await world.producer.stats()).toMatchObject({ queued: 2, unknown: 2 });
  }, 60_000);

  it('by hand: nothing begins after the pause has returned', async () => {
    await world.enqueue(6);
    world.startWorker();
    await until('sending has begun', () => world.sandbox.stats().arrivals >= 2);
    await ledger.pause('tester', 'lunch');
    const { sends } = await world.producer.stats();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect((await world.producer.stats()).sends).toBe(sends);
  }, 60_000);
});
