import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { expectPace, openWorkerIn, worldOfTest } from './support/payout-world.js';

const STRUCTURES = ['wait', 'active', 'delayed', 'prioritized', 'meta', 'marker', 'stalled'];
const WITHDRAW = STRUCTURES.map((name) => `withdraw:${name}`);

/** What is deleted, and the state of the payouts that lose their jobs; without one the queue heals itself. */
const DAMAGES: readonly (readonly [keys: readonly string[], loses?: 'queued' | 'in_progress'])[] = [
  [['withdraw:wait'], 'queued'],
  [['withdraw:active']],
  [['withdraw:meta']],
  [['withdraw:plain-5~0'], 'queued'],
  [WITHDRAW, 'queued'],
  [['transactionstatus:delayed'], 'in_progress'],
  [['transactionstatus:meta']],
  [['transactionstatus:plain-1~0'], 'in_progress'],
  [[...WITHDRAW, ...STRUCTURES.map((name) => `transactionstatus:${name}`)], 'queued'],
];
const PLATFORM_IDS = DAMAGES.map((_, index) => 1_000 + index);
const PLAIN = ['plain-1', 'plain-2', 'plain-3', 'plain-4', 'plain-5'];
const PAYOUTS = PLAIN.length + 2;

// All at once, each in an account of its own: each waits for most of a minute.
it('keys of the queues are deleted under a running worker: every payout is sent once and completed', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const operator = new Redis(redis.url);
  afterTest(async () => operator.quit());
  // So that each queue has jobs when it is damaged, and a poll is under way.
  const sandbox = { settleAfterMs: 8_000, latencyAfterMs: 100 };
  const world = await worldOfTest({ redis, platformIds: PLATFORM_IDS, sandbox });
  const recreated: { platformId: number; state: string; count: number; at: number }[] = [];
  const observe = (platformId: number) => ({
    ...noObserver,
    jobsRecreated: (state: string, count: number) =>
      void recreated.push({ platformId, state, count, at: performance.now() }),
  });
  const quick = { leaseMs: 2_000, quarantineMs: 0, pollMinMs: 200, pollMaxMs: 1_000 };
  const { accounts } = await openWorkerIn(world, { observe }, quick, PLATFORM_IDS);
  await until('all send', () => accounts.every(({ status }) => status.role === 'sender'));

  const damage = async ([names, loses]: (typeof DAMAGES)[number], index: number): Promise<void> => {
    const platformId = 1_000 + index;
    const producer = world.producerOf(platformId);
    const keyOf = (name: string): string => `{payouts:${platformId}}:${name}`;
    const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
    const later = { ...payout('later'), notBefore: new Date(Date.now() + 20_000) };
    await producer.enqueueMany([...PLAIN.map(payout), { ...payout('urgent'), priority: 2 }, later]);
    await until('one is in progress', async () => (await producer.stats()).in_progress > 0);
    // A job may just be on its way from one structure to another.
    await until('something was there to delete', async () => (await operator.del(...names.map(keyOf))) > 0);
    const damagedAt = performance.now();

    await until('all are completed', async () => (await producer.stats()).completed === PAYOUTS, 120_000);
    expectPace(world.sandbox, platformId);
    const again = recreated.filter((each) => each.platformId === platformId);
    if (loses !== undefined) expect(again.find(({ state }) => state === loses)?.at).toBeLessThan(damagedAt + 60_000);
    expect(again.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(2 * PAYOUTS);
    // No second job is left for any of them.
    const countJobs = async (): Promise<number> => {
      const lengths = ['withdraw', 'transactionstatus'].flatMap((queue) => [
        ...['wait', 'active', 'paused'].map(async (name) => operator.llen(keyOf(`${queue}:${name}`))),
        ...['delayed', 'prioritized'].map(async (name) => operator.zcard(keyOf(`${queue}:${name}`))),
      ]);
      return (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
    };
    await until('the queues are empty', async () => (await countJobs()) === 0, 20_000);
    await delay(1_000);
    expect(world.sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
  };
  const found = await Promise.allSettled(DAMAGES.map(damage));
  expect(found).toEqual(DAMAGES.map(() => ({ status: 'fulfilled', value: undefined })));
}, 240_000);
