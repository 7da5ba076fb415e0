import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { startRedisCluster } from '../support/redis-cluster.js';
import { startRedisSentinel } from '../support/redis-sentinel.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import {
  expectPromisesKept,
  untilSent,
  untilSettled,
  untilSettledAfterOutage,
  worldOfTest,
  type PayoutWorld,
} from '../worker/support/payout-world.js';
import { until } from '../support/until.js';
import { cents } from '../support/account.js';

const keyOf = ({ platformId }: PayoutWorld): string => `{payouts:${platformId}}:ledger`;

describe.each([
  { kind: 'Redis Cluster', start: async () => startRedisCluster(), fewerReplicas: '0' },
  { kind: 'Redis Sentinel', start: async () => startRedisSentinel(), fewerReplicas: '1' },
])('$kind', ({ start, fewerReplicas }) => {
  it('loses its master in the middle: the work continues and the promises hold', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 } } });
    await world.enqueue(8);
    const worker = world.startWorker();
    await untilSent(world, 3);
    await redis.killMaster(keyOf(world));
    await untilSettledAfterOutage(world, 8).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${worker.log()}`);
    });
    await expectPromisesKept(world);
    expect(await world.producer.enqueueMany(cents(['P-1']))).toMatchObject({ created: 0 });
    await world.enqueue(2, 'AFTER');
    await until('later payouts are sent too', () => world.sandbox.stats().arrivals === 10);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  }, 120_000);

  it('loses a replica: nothing is sent until it is back, so that no failover forgets a send', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis });
    await world.enqueue(4);
    const worker = world.startWorker();
    await untilSent(world, 2);
    await redis.killReplica(keyOf(world));
    await until('the worker says so', () => /Only \d of \d replicas of Redis acknowledge writes/.test(worker.log()));
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);
    await redis.startReplicaAgain(keyOf(world));
    await untilSettled(world, 4);
    await expectPromisesKept(world);
  }, 120_000);

  it('comes back from a copy that missed writes: nothing is sent until an operator decides', async () => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis });
    await world.enqueue(6);
    const worker = world.startWorker({ environment: { REDIS_REPLICAS: fewerReplicas } });
    await untilSent(world, 1);
    await redis.killReplica(keyOf(world));
    await untilSent(world, 3);
    await redis.killOtherReplicas(keyOf(world));
    await redis.killMaster(keyOf(world));
    await redis.startReplicaAgain(keyOf(world));
    await until('the worker refuses', () => /adopt-ledger/.test(worker.log()), 60_000);
    expect(worker.log()).toMatch(/older|The send journal says that payout/);
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats()).toMatchObject({ arrivals, duplicatePayments: [], blocked: false });
  }, 120_000);
});
