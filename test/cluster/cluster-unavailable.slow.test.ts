import { describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { checkDurability } from '../../src/ledger/redis-durability.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import { payoutInput } from '../producer/support/payout-input.js';

const WITHIN_MS = 7_000;
describe('servers of which none is there', () => {
  it.each(['redis-cluster://127.0.0.1:PORT', 'redis-sentinel://127.0.0.1:PORT/payouts'])(
    'fail a call through %s within seconds',
    async (url) => {
      const redisUrl = url.replace('PORT', String(await findFreePort()));
      const producer = closeAfterTest(new PayoutProducer({ platformId: newPlatformId(), redisUrl }));
      const startedAt = performance.now();
      await expect(producer.enqueue(payoutInput())).rejects.toBeInstanceOf(RedisUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS);
    },
  );

  it('are not taken for ones that keep everything', async () => {
    const redis = connectRedis(`redis-cluster://127.0.0.1:${await findFreePort()}`, 'commands');
    afterTest(async () => closeRedis(redis));
    await expect(checkDurability(redis)).rejects.toBeInstanceOf(RedisUnavailableError);
  });
});
