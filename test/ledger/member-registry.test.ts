import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MemberRegistry, versionOf, type MemberReport } from '../../src/ledger/member-registry.js';
import { SHARED_KEYS } from '../../src/ledger/keys.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';

let server: LocalRedis;
let redis: RedisClient;

beforeEach(async () => {
  server = await startLocalRedis();
  redis = connectRedis(server.url, 'commands');
});
afterEach(async () => {
  await closeRedis(redis);
  await server.stop();
});

const REPORT: MemberReport = { version: 3, folder: 'f', accounts: [1, 2], unfit: [2], claims: [1], held: [] };

it('lists every process with its heartbeat, and says whether it was listed itself', async () => {
  const [one, two] = [new MemberRegistry(redis, 'one'), new MemberRegistry(redis, 'two')];
  expect(await one.exchange({ count: 1, version: 0 })).toEqual({
    heartbeats: new Map([['one', '1 0']]),
    wasListed: false,
  });
  await two.exchange({ count: 7, version: 3 });
  const { heartbeats, wasListed } = await one.exchange({ count: 2, version: 0 });
  expect({ heartbeats, wasListed }).toEqual({
    heartbeats: new Map([
      ['one', '2 0'],
      ['two', '7 3'],
    ]),
    wasListed: true,
  });
  expect(versionOf(heartbeats.get('two') ?? '')).toBe(3);
  await redis.del(SHARED_KEYS.members);
  expect((await one.exchange({ count: 3, version: 0 })).wasListed).toBe(false);
});

it('keeps the reports, and leaves out what cannot be read', async () => {
  const registry = new MemberRegistry(redis, 'one');
  await registry.report(REPORT);
  const huge = JSON.stringify({ ...REPORT, claims: Array.from({ length: 20_001 }, (_, index) => index) });
  await redis.hset(SHARED_KEYS.memberReports, 'two', '{"version":"x"}', 'three', 'no JSON', 'huge', huge);
  expect(await registry.readReports(['one', 'two', 'three', 'huge', 'four'])).toEqual(new Map([['one', REPORT]]));
  expect(await registry.readReports([])).toEqual(new Map());
  expect([versionOf('no heartbeat'), versionOf('')]).toEqual([undefined, undefined]);
});

it('shows who leaves, and forgets who is removed', async () => {
  const [one, two] = [new MemberRegistry(redis, 'one'), new MemberRegistry(redis, 'two')];
  await one.exchange({ count: 1, version: 1 });
  await one.report(REPORT);
  await one.leave();
  expect((await two.exchange({ count: 1, version: 1 })).heartbeats.get('one')).toBeUndefined();
  expect(await two.readReports(['one'])).toEqual(new Map());
  await two.remove(['one']);
  await two.remove([]);
  expect(await redis.hkeys(SHARED_KEYS.members)).toEqual(['two']);
});

it('fits the rights that are documented for the Redis user', () => {
  for (const key of Object.values(SHARED_KEYS)) expect(key).toMatch(/^\{payouts:/);
});
