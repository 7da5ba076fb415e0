import { afterEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { checkDurability } from '../../src/ledger/redis-durability.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { payoutInput } from '../producer/support/payout-input.js';

const WITHIN_MS = 7_000;
let producer: PayoutProducer | undefined;
let redis: RedisClient | undefined;

afterEach(async () => {
  await producer?.close();
  if (redis !== undefined) await closeRedis(redis);
});

describe('servers of which none is there', () => {
  it.each(['redis-cluster://127.0.0.1:PORT', 'redis-sentinel://127.0.0.1:PORT/payouts'])(
    'fail a call through %s within seconds',
    async (url) => {
      const redisUrl = url.replace('PORT', String(await findFreePort()));
      producer = new PayoutProducer({ platformId: newPlatformId(), redisUrl });
      const startedAt = performance.now();
      await expect(producer.enqueue(payoutInput())).rejects.toBeInstanceOf(RedisUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS);
    },
  );

  it('are not taken for ones that keep everything', async () => {
    redis = connectRedis(`redis-cluster://127.0.0.1:${await findFreePort()}`, 'commands');
    await expect(checkDurability(redis)).rejects.toBeInstanceOf(RedisUnavailableError);
  });
});
