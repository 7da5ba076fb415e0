import { describe, expect, it } from '@jest/globals';
import { findServer, slotOf } from '../../src/ledger/redis-durability.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { connectAdmin } from '../support/redis-cluster.js';

describe('the slot of a key', () => {
  it('is the one that Redis Cluster gives it', async () => {
    const keys = ['123456789', '{payouts:42}:ledger', '{payouts:42}', 'a{}b{c}', 'a{{b}}c', 'a}b{c', '', '{ü}:é'];
    const server = await startLocalRedis({ args: ['--cluster-enabled', 'yes'] });
    const admin = connectAdmin(server.port);
    try {
      for (const key of keys) expect([key, slotOf(key)]).toEqual([key, await admin.call('CLUSTER', 'KEYSLOT', key)]);
    } finally {
      admin.disconnect();
      await server.stop();
    }
  });

  it('keeps all keys of an account together', () => {
    expect(slotOf('{payouts:42}:sender')).toBe(slotOf('{payouts:42}:payout:p-1'));
    expect(slotOf('{payouts:42}:sender')).not.toBe(slotOf('{payouts:43}:sender'));
  });
});

it('a cluster that is not reached has no server for any key', async () => {
  const redis = connectRedis('redis-cluster://127.0.0.1:1', 'commands');
  expect(findServer(redis, '{payouts:42}:ledger')).toBeUndefined();
  await closeRedis(redis);
});
