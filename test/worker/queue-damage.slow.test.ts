import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { createPayoutWorker, type PayoutWorker } from '../../src/control/payout-worker.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { until } from '../support/until.js';
import { startOwnRedis, type OwnRedis } from './support/own-redis.js';
import { expectPace, openWorld, SECRET_KEY, type PayoutWorld } from './support/payout-world.js';

const STRUCTURES = ['wait', 'active', 'delayed', 'prioritized', 'meta', 'marker', 'stalled'];
const WITHDRAW = STRUCTURES.map((name) => `withdraw:${name}`);

/** The keys that are deleted, and the state of the payouts that lose their jobs; without one the queue heals itself. */
const DAMAGES: readonly (readonly [name: string, loses?: 'queued' | 'in_progress', keys?: readonly string[]])[] = [
  ['withdraw:wait', 'queued'],
  ['withdraw:active'],
  ['withdraw:meta'],
  ["a withdraw job's hash", 'queued', ['withdraw:plain-5~0']],
  ['all of withdraw', 'queued', WITHDRAW],
  ['transactionstatus:delayed', 'in_progress'],
  ['transactionstatus:meta'],
  ["a status job's hash", 'in_progress', ['transactionstatus:plain-1~0']],
  ['all of both queues', 'queued', [...WITHDRAW, ...STRUCTURES.map((name) => `transactionstatus:${name}`)]],
];
const PLATFORM_IDS = DAMAGES.map((_, index) => 1_000 + index);
const PLAIN = ['plain-1', 'plain-2', 'plain-3', 'plain-4', 'plain-5'];
const PAYOUTS = PLAIN.length + 2;

let redis: OwnRedis;
let operator: Redis;
let world: PayoutWorld;
let worker: PayoutWorker;
const damagedAt = new Map<number, number>();
const recreated: { platformId: number; state: string; count: number; at: number }[] = [];

// All at once, each in an account of its own: each waits for most of a minute.
beforeAll(async () => {
  redis = await startOwnRedis();
  operator = new Redis(redis.url);
  // So that each queue has jobs when it is damaged, and a poll is under way.
  const sandbox = { settleAfterMs: 8_000, latencyAfterMs: 100 };
  world = await openWorld({ redis, platformIds: PLATFORM_IDS, sandbox });
  const access = { baseUrl: world.sandbox.url, secretKey: SECRET_KEY };
  const quick = { leaseMs: 2_000, quarantineMs: 0, pollMinMs: 200, pollMaxMs: 1_000 };
  worker = await createPayoutWorker({
    ...{ redisUrl: redis.url, journalDir: world.env.SEND_JOURNAL_DIR },
    accounts: PLATFORM_IDS.map((platformId) => ({ platformId, ...access, ...quick })),
    observe: (platformId) => ({
      ...noObserver,
      jobsRecreated: (state, count) => void recreated.push({ platformId, state, count, at: performance.now() }),
    }),
  });
  await until('all send', () => worker.accounts.every(({ status }) => status.role === 'sender'));
  await Promise.all(DAMAGES.map(async ([name, , keys = [name]], index) => damage(1_000 + index, keys)));
}, 120_000);

afterAll(async () => {
  await worker.stop();
  await operator.quit();
  await world.close();
  await redis.close();
});

const keyOf = (platformId: number, name: string): string => `{payouts:${platformId}}:${name}`;

async function damage(platformId: number, names: readonly string[]): Promise<void> {
  const producer = world.producerOf(platformId);
  const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
  const later = { ...payout('later'), notBefore: new Date(Date.now() + 20_000) };
  await producer.enqueueMany([...PLAIN.map(payout), { ...payout('urgent'), priority: 2 }, later]);
  await until('one is in progress', async () => (await producer.stats()).in_progress > 0);
  const keys = names.map((name) => keyOf(platformId, name));
  // A job may just be on its way from one structure to another.
  await until('something was there to delete', async () => (await operator.del(...keys)) > 0);
  damagedAt.set(platformId, performance.now());
}

async function countJobs(platformId: number): Promise<number> {
  const lengths = ['withdraw', 'transactionstatus'].flatMap((queue) => [
    ...['wait', 'active', 'paused'].map(async (name) => operator.llen(keyOf(platformId, `${queue}:${name}`))),
    ...['delayed', 'prioritized'].map(async (name) => operator.zcard(keyOf(platformId, `${queue}:${name}`))),
  ]);
  return (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
}

it.each(DAMAGES.map(([name, loses], index) => [name, loses, 1_000 + index] as const))(
  '%s, deleted under a running worker: every payout is sent once and completed',
  async (_, loses, platformId) => {
    const { sandbox } = world;
    const stats = async () => world.producerOf(platformId).stats();
    await until('all are completed', async () => (await stats()).completed === PAYOUTS, 120_000);
    expectPace(sandbox, platformId);
    expect(sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
    const again = recreated.filter((each) => each.platformId === platformId);
    if (loses !== undefined) {
      const told = again.find(({ state }) => state === loses);
      expect(told?.at).toBeLessThan((damagedAt.get(platformId) ?? 0) + 60_000);
    }
    expect(again.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(2 * PAYOUTS);
    // No second job is left for any of them.
    await until('the queues are empty', async () => (await countJobs(platformId)) === 0, 20_000);
    await delay(1_000);
    expect(sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
  },
  180_000,
);
