import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { MemberRegistry } from '../../../src/ledger/member-registry.js';
import { AccountSharing } from '../../../src/worker/sharing/account-sharing.js';
import { testRedisUrl } from '../../support/account.js';

it('a process that stops during an exchange is not listed again by it', async () => {
  const redis = connectRedis(testRedisUrl(), 'commands');
  const id = randomUUID();
  const registry = new MemberRegistry(redis, id);
  let [begin, release] = [(): void => undefined, (): void => undefined];
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const slow = new Promise<void>((resolve) => (release = resolve));
  const exchange: MemberRegistry['exchange'] = async (heartbeat) => {
    begin();
    await slow;
    return registry.exchange(heartbeat);
  };
  const sharing = new AccountSharing({
    ...{ id, accounts: [], clock: systemClock, logger: silentLogger },
    registry: {
      exchange,
      report: registry.report.bind(registry),
      readReports: registry.readReports.bind(registry),
      leave: registry.leave.bind(registry),
      remove: registry.remove.bind(registry),
    },
    nameFolder: async () => Promise.resolve(undefined),
    patienceMs: () => Infinity,
  });
  sharing.start();
  await begun;
  const stopped = sharing.stop();
  release();
  await stopped;
  const { heartbeats } = await new MemberRegistry(redis, `${id}-other`).exchange({ count: 1, version: 0 });
  await registry.remove([id, `${id}-other`]);
  await closeRedis(redis);
  expect([...heartbeats.keys()]).toContain(id);
  expect(heartbeats.get(id)).toBeUndefined();
});
