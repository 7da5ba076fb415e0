import type { RedisClient } from '../../../src/base/redis.js';
import { until } from '../../support/until.js';
import { openWorkerIn, worldOfTest } from './payout-world.js';

/** Enqueues one payout by `redisUrl`, and sends it by a worker that is given the connection. */
export async function payThrough(connection: RedisClient, url: string): Promise<void> {
  const world = await worldOfTest({ redis: { url } });
  await world.enqueue(1);
  await openWorkerIn(world, { connection });
  await until('it is paid', async () => (await world.producer.stats()).completed === 1);
}
