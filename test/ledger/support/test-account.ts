import { randomInt } from 'node:crypto';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { createWallClock } from './wall-clock.js';

export type TestAccount = ReturnType<typeof openTestAccount>;

export function openTestAccount(platformId = randomInt(1, 2 ** 47)) {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  const clock = createWallClock();
  const connection = connectLedger(redis, platformId, clock);
  const findKeys = async () => redis.keys(`${connection.keys.prefix}:*`);
  return {
    platformId,
    redis,
    clock,
    connection,
    ledger: new PayoutLedger(connection),
    sender: new RedisSenderLedger(connection, 'reply') as SenderLedger,
    /** Every key of the account with its content, to see that something changed nothing. */
    async dump(): Promise<Record<string, string>> {
      const keys = (await findKeys()).sort();
      const contents = await Promise.all(keys.map(async (key) => redis.dumpBuffer(key)));
      return Object.fromEntries(keys.map((key, index) => [key, contents[index]?.toString('hex') ?? '']));
    },
    /** Removes the account's keys and closes the connection. */
    async close() {
      const keys = await findKeys();
      if (keys.length > 0) await redis.unlink(...keys);
      await closeRedis(redis);
    },
  };
}
