import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createPayoutWorker, type PayoutWorker } from '../../src/control/payout-worker.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { until } from '../support/until.js';

interface Damage {
  readonly name: string;
  /** The keys that are deleted, behind the account's prefix. */
  readonly keys: readonly string[];
  /** The state of the payouts that lose their jobs by it; where none is named, the queue makes up for it by itself. */
  readonly loses?: 'queued' | 'in_progress';
}

const STRUCTURES = ['wait', 'active', 'delayed', 'prioritized', 'meta', 'marker', 'stalled'];

const DAMAGES: readonly Damage[] = [
  { name: 'withdraw:wait', keys: ['withdraw:wait'], loses: 'queued' },
  { name: 'withdraw:prioritized', keys: ['withdraw:prioritized'], loses: 'queued' },
  { name: 'withdraw:delayed', keys: ['withdraw:delayed'], loses: 'queued' },
  { name: 'withdraw:active', keys: ['withdraw:active'] },
  { name: 'withdraw:meta', keys: ['withdraw:meta'] },
  { name: "a withdraw job's hash", keys: ['withdraw:plain-5~0'], loses: 'queued' },
  { name: 'all of withdraw', keys: STRUCTURES.map((name) => `withdraw:${name}`), loses: 'queued' },
  { name: 'transactionstatus:delayed', keys: ['transactionstatus:delayed'], loses: 'in_progress' },
  { name: 'transactionstatus:active', keys: ['transactionstatus:active'], loses: 'in_progress' },
  { name: 'transactionstatus:meta', keys: ['transactionstatus:meta'] },
  { name: "a status job's hash", keys: ['transactionstatus:plain-1~0'], loses: 'in_progress' },
  {
    name: 'all of both queues',
    keys: STRUCTURES.flatMap((name) => [`withdraw:${name}`, `transactionstatus:${name}`]),
    loses: 'queued',
  },
];

const SECRET_KEY = 'k-damage-0123456789';
const PLAIN = ['plain-1', 'plain-2', 'plain-3', 'plain-4', 'plain-5'];
const PAYOUTS = PLAIN.length + 2;
const LATER_MS = 20_000;
/** A payout is in progress for longer than several sends take, so that each queue has jobs when it is damaged. */
const SETTLE_AFTER_MS = 8_000;

/** An account whose queues are damaged, and what came of it. */
interface Victim {
  readonly platformId: number;
  readonly producer: PayoutProducer;
  damagedAt: number;
  readonly recreated: { readonly state: string; readonly count: number; readonly at: number }[];
}

let redis: LocalRedis;
let operator: Redis;
let sandbox: Sandbox;
let worker: PayoutWorker;
let dir: string;
let victims: Victim[];

// All at once, each in an account of its own: each waits for most of a minute.
beforeAll(async () => {
  redis = await startLocalRedis();
  operator = new Redis(redis.url);
  dir = await mkdtemp(join(tmpdir(), 'payouts-damage-'));
  victims = DAMAGES.map((_, index) => {
    const platformId = 1_000 + index;
    return {
      platformId,
      producer: new PayoutProducer({ redisUrl: redis.url, platformId }),
      damagedAt: Number.NaN,
      recreated: [],
    };
  });
  sandbox = await startSandbox({
    accounts: victims.map(({ platformId }) => ({ platformId, secretKey: SECRET_KEY })),
    settleAfterMs: SETTLE_AFTER_MS,
    // A poll takes a while, so that one is under way when the queue is damaged.
    latencyAfterMs: 100,
  });
  worker = await createPayoutWorker({
    redisUrl: redis.url,
    journalDir: dir,
    accounts: victims.map(({ platformId }) => ({
      platformId,
      baseUrl: sandbox.url,
      secretKey: SECRET_KEY,
      leaseMs: 2_000,
      quarantineMs: 0,
      pollMinMs: 200,
      pollMaxMs: 1_000,
    })),
    observe: (platformId) => ({
      ...noObserver,
      jobsRecreated: (state, count) => {
        victims
          .find((victim) => victim.platformId === platformId)
          ?.recreated.push({ state, count, at: performance.now() });
      },
    }),
  });
  await until('all send', () => worker.accounts.every(({ status }) => status.role === 'sender'));
  await Promise.all(victims.map(async (victim, index) => damage(victim, DAMAGES[index]?.keys ?? [])));
}, 120_000);

afterAll(async () => {
  await Promise.all(victims.map(async ({ producer }) => producer.close()));
  await worker.stop();
  await sandbox.close();
  await operator.quit();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

async function damage(victim: Victim, names: readonly string[]): Promise<void> {
  const { platformId, producer } = victim;
  const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
  await producer.enqueueMany([
    ...PLAIN.map(payout),
    { ...payout('urgent'), priority: 2 },
    { ...payout('later'), notBefore: new Date(Date.now() + LATER_MS) },
  ]);
  await until('one is in progress', async () => (await producer.stats()).in_progress > 0);
  const keys = names.map((name) => `{payouts:${platformId}}:${name}`);
  // A job may just be on its way from one structure to another.
  await until('something was there to delete', async () => (await operator.del(...keys)) > 0);
  victim.damagedAt = performance.now();
}

async function countJobs(platformId: number): Promise<number> {
  const lengths = ['withdraw', 'transactionstatus'].flatMap((queue) => {
    const key = (name: string): string => `{payouts:${platformId}}:${queue}:${name}`;
    return [
      ...['wait', 'active', 'paused'].map(async (name) => operator.llen(key(name))),
      ...['delayed', 'prioritized'].map(async (name) => operator.zcard(key(name))),
    ];
  });
  return (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
}

it.each(DAMAGES.map((each, index) => ({ ...each, index })))(
  '$name, deleted under a running worker: every payout is sent once and completed',
  async ({ index, loses }) => {
    const victim = victims[index];
    if (victim === undefined) throw new Error('There is an account for each damage');
    const { platformId, producer, damagedAt, recreated } = victim;
    await until('all are completed', async () => (await producer.stats()).completed === PAYOUTS, 120_000);
    const { arrivals, duplicatePayments, blocked, smallestGapMs } = sandbox.stats(platformId);
    expect({ arrivals, duplicatePayments, blocked }).toEqual({
      arrivals: PAYOUTS,
      duplicatePayments: [],
      blocked: false,
    });
    expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
    if (loses !== undefined) {
      const told = recreated.find(({ state }) => state === loses);
      expect(told?.at).toBeLessThan(damagedAt + 60_000);
    }
    const again = recreated.reduce((sum, { count }) => sum + count, 0);
    expect(again).toBeLessThanOrEqual(2 * PAYOUTS);
    // No second job is left for any of them.
    await until('the queues are empty', async () => (await countJobs(platformId)) === 0, 20_000);
    await delay(1_000);
    expect(sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
  },
  180_000,
);
