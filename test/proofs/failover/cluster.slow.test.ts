import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { startRedisCluster } from '../../support/redis-cluster.js';
import { until } from '../../support/until.js';
import { closeAfterTest } from '../../worker/support/close-after-test.js';
import { expectPace, type PayoutWorld, untilSent, worldOfTest } from '../../worker/support/payout-world.js';

/** A Redis Cluster of three masters and three replicas, with real processes. Counted at the gateway. */

const PAYOUTS = 14;
/** Longer than a takeover with its quarantine. */
const STAYS_MS = 18_000;
const REFUSED = /Only 0 of 1 replicas of Redis acknowledge writes/;

const keyOf = ({ platformId }: PayoutWorld) => `{payouts:${platformId}}:ledger`;

it('a shard that loses its replica, its master’s memory of it, and then its master, pays nothing twice', async () => {
  const redis = closeAfterTest(await startRedisCluster());
  const world = await worldOfTest({ redis, sandbox: { minGapMs: 1 } });
  await world.enqueue(PAYOUTS);
  const left = world.startWorker({ journalDir: join(world.dir, 'left') });
  await untilSent(world, 4);
  await redis.killReplica(keyOf(world));
  await until('nothing is sent without the replica', () => REFUSED.test(left.log()));
  const { arrivals } = world.sandbox.stats();

  await redis.killMaster(keyOf(world));
  await redis.startMasterAgain(keyOf(world));
  left.kill('SIGKILL');
  const again = world.startWorker({ journalDir: join(world.dir, 'left') });
  await until('neither its restart nor the worker’s changes that', () => REFUSED.test(again.log()));
  await delay(STAYS_MS);
  expect(world.sandbox.stats().arrivals).toBe(arrivals);

  again.kill('SIGKILL');
  await redis.killMaster(keyOf(world));
  await redis.startReplicaAgain(keyOf(world));
  await redis.takeOver(keyOf(world));
  const other = world.startWorker({ journalDir: join(world.dir, 'other') });
  await until('the other host is told', () => REFUSED.test(other.log()));
  await delay(STAYS_MS);
  expect(world.sandbox.stats().arrivals).toBe(arrivals);

  await redis.startMasterAgain(keyOf(world));
  await untilSent(world, PAYOUTS);
  expectPace(world.sandbox);
}, 300_000);
