import { expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { countStuck } from '../../src/ledger/reads/payout-queries.js';
import { begin, NO_BREAKER, takeLease } from './contract/ledger-rig.js';
import { randomPlatformId } from '../worker/support/watched-worker.js';

it('counts exactly those that are in progress for longer', async () => {
  let now = 1_800_000_000_000;
  const clock: Clock = { ...systemClock, wallNow: () => now };
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  try {
    const connection = connectLedger(redis, randomPlatformId(), clock);
    const ledger = new PayoutLedger(connection);
    const sender = new RedisSenderLedger(connection, 'reply');
    const lease = await takeLease(sender, 'test');

    expect(await countStuck(connection, 0)).toBe(0);
    for (let sends = 0; sends < 7; sends += 1) {
      const payoutId = `P-${sends}`;
      await ledger.enqueue([{ payoutId, paymentId: 1, amount: '1', addressTo: 'wallet' }]);
      const attempt = await begin(sender, lease, payoutId);
      await sender.finishSend(attempt, { kind: 'accepted', txhash: `tx-${sends}` }, NO_BREAKER, 0);
      now += 1_000;
    }
    // P-6 has been there for 1 s, P-0 for 7 s.
    for (let stuck = 0; stuck <= 7; stuck += 1) {
      expect(await countStuck(connection, 7_500 - stuck * 1_000)).toBe(stuck);
    }
    expect(await countStuck(connection, 7_000)).toBe(0);
    await ledger.change({ payoutId: 'P-0', from: 'in_progress', to: 'completed' });
    expect(await countStuck(connection, 0)).toBe(6);
  } finally {
    await closeRedis(redis);
  }
});
