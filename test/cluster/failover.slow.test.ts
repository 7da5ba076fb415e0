import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startRedisCluster, type ReplicatedRedis } from '../support/redis-cluster.js';
import { startRedisSentinel } from '../support/redis-sentinel.js';
import { endAllWorkers } from '../worker/support/worker-process.js';
import {
  expectPromisesKept,
  openWorld,
  untilSent,
  untilSettled,
  untilSettledAfterOutage,
  type PayoutWorld,
} from '../worker/support/payout-world.js';
import { until } from '../support/until.js';

let redis: ReplicatedRedis;
let world: PayoutWorld;

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.close();
});

const key = (): string => `{payouts:${world.platformId}}:ledger`;

describe.each([
  { kind: 'Redis Cluster', start: async () => startRedisCluster(), fewerReplicas: '0' },
  { kind: 'Redis Sentinel', start: async () => startRedisSentinel(), fewerReplicas: '1' },
])('$kind', ({ start, fewerReplicas }) => {
  it('loses its master in the middle: the work continues and the promises hold', async () => {
    redis = await start();
    world = await openWorld({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 } } });
    await world.enqueue(8);
    const worker = world.startWorker();
    await untilSent(world, 3);
    await redis.killMaster(key());
    await untilSettledAfterOutage(world, 8).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${worker.log()}`);
    });
    await expectPromisesKept(world);
    const first = { payoutId: 'P-1', paymentId: 1, amount: '0.01', addressTo: 'wallet-p1xxxxxxxxxxxxxxxxxxxxxxxxxxxx' };
    expect(await world.producer.enqueue(first)).toMatchObject({ created: false });
    await world.enqueue(2, 'AFTER');
    await until('later payouts are sent too', () => world.sandbox.stats().arrivals === 10);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  }, 120_000);

  it('loses a replica: nothing is sent until it is back, so that no failover forgets a send', async () => {
    redis = await start();
    world = await openWorld({ redis });
    await world.enqueue(4);
    const worker = world.startWorker();
    await untilSent(world, 2);
    await redis.killReplica(key());
    await until('the worker says so', () => /Only \d of \d replicas of Redis acknowledge writes/.test(worker.log()));
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);
    await redis.startReplicaAgain(key());
    await untilSettled(world, 4);
    await expectPromisesKept(world);
  }, 120_000);

  it('comes back from a copy that missed writes, where an operator counts fewer replicas: nothing is sent until an operator decides', async () => {
    redis = await start();
    world = await openWorld({ redis });
    await world.enqueue(6);
    const worker = world.startWorker({ environment: { REDIS_REPLICAS: fewerReplicas } });
    await untilSent(world, 1);
    await redis.killReplica(key());
    await untilSent(world, 3);
    await redis.killOtherReplicas(key());
    await redis.killMaster(key());
    await redis.startReplicaAgain(key());
    await until('the worker refuses', () => /adopt-ledger/.test(worker.log()), 60_000);
    expect(worker.log()).toMatch(/older|The send journal says that payout/);
    const { arrivals } = world.sandbox.stats();
    await delay(4_000);
    expect(world.sandbox.stats()).toMatchObject({ arrivals, duplicatePayments: [], blocked: false });
  }, 120_000);
});
