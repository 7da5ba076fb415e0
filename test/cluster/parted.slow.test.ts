import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import type { BeginSend } from '../../src/ledger/sender-ledger.js';
import { nextBegin, NO_BREAKER, takeLease } from '../ledger/contract/ledger-rig.js';
import { findContradictions } from '../ledger/scripts/find-contradictions.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { createWallClock } from '../ledger/support/wall-clock.js';
import { cents, newPlatformId } from '../support/account.js';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.js';
import { startSplitSentinel } from '../support/replicated-redis.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPromisesKept, untilSent, worldOfTest } from '../worker/support/payout-world.js';

/** Long enough for many more keys than there are. */
const MOVED_KEYS_MAX = 500;

let redis: RedisCluster;
beforeAll(async () => {
  redis = await startRedisCluster();
}, 60_000);
afterAll(async () => redis.close());

/** The account's ledger, on connections of its own. */
function open(platformId: number): { connection: LedgerConnection; contradictions: () => Promise<unknown> } {
  const client = connectRedis(redis.url, 'commands');
  afterTest(async () => closeRedis(client));
  const connection = connectLedger(client, platformId, createWallClock());
  return { connection, contradictions: async () => findContradictions({ connection, redis: connection.redis }) };
}

it('a slot that moves lets nothing be half done, and nothing read as absent that is there', async () => {
  const { connection, contradictions } = open(newPlatformId());
  const ledger = new PayoutLedger(connection);
  const sender = new RedisSenderLedger(connection, 'reply');
  const { keys } = connection;
  const payoutIds = ['sent', 'begun', 'queued', 'cancel', 'poll'];
  await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  const lease = await takeLease(sender, 'one');
  for (const payoutId of ['sent', 'poll']) {
    const attempt = await nextBegin(sender, lease, payoutId);
    await sender.beginSend(attempt);
    await sender.finishSend(attempt, { kind: 'accepted', gatewayId: `hash-${payoutId}` }, NO_BREAKER, 0);
  }
  const begun = await nextBegin(sender, lease, 'begun');
  await sender.beginSend(begun);
  const next: BeginSend = { ...(await nextBegin(sender, lease, 'queued')), payoutId: 'queued' };

  /** What anyone may do meanwhile: done as a whole, or not at all because Redis is unavailable. */
  const calls: Record<string, () => Promise<unknown>> = {
    'enqueue again': async () => {
      const results = await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
      expect(results.map(({ kind }) => kind)).toEqual(payoutIds.map(() => 'exists'));
    },
    'enqueue another': async () => ledger.enqueue([aPayout(`new-${randomInt(1e9)}`)]),
    finish: async () => sender.finishSend(begun, { kind: 'accepted', gatewayId: 'hash-begun' }, NO_BREAKER, 0),
    begin: async () => sender.beginSend(next),
    poll: async () =>
      ledger.change({ payoutId: 'poll', from: 'in_progress', to: 'completed' }).catch((error: unknown) => {
        if ((error as Error).name !== 'ConflictError') throw error;
      }),
    cancel: async () => ledger.change({ payoutId: 'cancel', from: 'queued', to: 'cancelled', by: 'ann', reason: 'r' }),
    look: async () => {
      expect(await sender.readSender()).toMatchObject({ lease: { owner: 'one' }, sendCount: expect.any(Number) });
    },
    get: async () => {
      for (const payoutId of payoutIds) expect(await ledger.get(payoutId)).toBeDefined();
    },
  };
  const refused = new Set<string>();
  const callAll = async () => {
    await Promise.all(
      Object.entries(calls).map(async ([name, call]) => {
        try {
          await call();
        } catch (error) {
          if (!(error instanceof RedisUnavailableError)) throw new Error(`${name}: ${String(error)}`);
          refused.add(name);
        }
      }),
    );
  };

  const move = await redis.beginMove(keys.ledger);
  let moved = 0;
  // Before the first key, among the middle ones and after the last: every few keys.
  do {
    if (moved % 4 === 0) await callAll();
    moved += 1;
    expect(moved).toBeLessThan(MOVED_KEYS_MAX);
  } while (await move.moveOne());
  await callAll();
  await move.end();
  // The account did wait, and continues by itself.
  expect(refused.size).toBeGreaterThan(0);
  await until('everything works again', async () => {
    refused.clear();
    await callAll();
    return refused.size === 0;
  });
  expect(await ledger.get('begun')).toMatchObject({ state: 'in_progress', gatewayId: 'hash-begun' });
  expect(await contradictions()).toEqual([]);
}, 240_000);

it('a slot that moves makes the account wait, visibly, and then continue by itself', async () => {
  const world = await worldOfTest({ redis });
  const payoutIds = await world.enqueue(12);
  const worker = world.startWorker();
  await untilSent(world, 3);
  const { producer, platformId } = world;
  const move = await redis.beginMove(`{payouts:${platformId}}:ledger`);
  const created: number[] = [];
  const asking = (async () => {
    for (let turn = 0; turn < 6; turn += 1) {
      await producer.enqueueMany(cents(payoutIds)).then(
        (again) => created.push(again.created),
        (error: unknown) => {
          expect(error).toBeInstanceOf(RedisUnavailableError);
        },
      );
    }
  })();
  while (await move.moveOne()) await delay(20);
  await asking;
  await until('the worker says so', () => /Redis is not available|Redis unavailable/.test(worker.log()));
  await move.end();
  await until('all are completed', async () => (await producer.stats()).completed === payoutIds.length);
  expect(created.filter((count) => count > 0)).toEqual([]);
  await expectPromisesKept(world);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(await open(platformId).contradictions()).toEqual([]);
}, 240_000);

const PAYOUTS = 16;
/** Longer than the cut-off master remembers its replicas. */
const STAYS_CUT_MS = 8_000;

it('a cut between a master with its worker and the rest has one sender at a time, and pays nothing twice', async () => {
  const redis = closeAfterTest(await startSplitSentinel());
  const world = await worldOfTest({
    redis: { url: redis.otherSideUrl },
    sandbox: { minGapMs: 1, latencyBeforeMs: { min: 0, max: 200 } },
  });
  await world.enqueue(PAYOUTS);
  const left = world.startWorker({ redisUrl: redis.masterSideUrl, journalDir: join(world.dir, 'left') });
  await untilSent(world, 3);
  const other = world.startWorker({ journalDir: join(world.dir, 'other') });
  await until('the other stands by', () => /worker started/.test(other.log()));
  await untilSent(world, 4);

  redis.cut();
  const readStats = async () => world.producer.stats().catch(() => undefined);
  for (const worker of [left, other]) {
    await until('neither has every replica', () => /replicas of Redis acknowledge/.test(worker.log()));
  }
  const { arrivals } = world.sandbox.stats();
  await delay(STAYS_CUT_MS);
  expect(world.sandbox.stats().arrivals).toBe(arrivals);
  redis.heal();

  // The gateway of this test blocks nobody, so that its book shows every payment that was asked for.
  const { duplicatePayments, smallestGapMs } = world.sandbox.stats();
  expect(duplicatePayments).toEqual([]);
  expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
  await until('every payout is settled', async () => {
    const stats = await readStats();
    return stats !== undefined && stats.completed + stats.unknown === PAYOUTS;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\nleft:\n${left.log()}\nother:\n${other.log()}`);
  });
  await expectPromisesKept(world);
  expect(left.log()).toMatch(/replicas .*acknowledge/);
  for (const worker of [left, other]) {
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  }
}, 150_000);
