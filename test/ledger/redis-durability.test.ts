import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import {
  checkDurability,
  checkServer,
  type DiskReply,
  judge,
  parseReplication,
} from '../../src/ledger/redis-durability.js';
import { findServer, slotOf } from '../../src/ledger/redis-servers.js';
import { findWriteRefusal } from '../../src/ledger/write-refusal.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { startWaitaofRedis } from '../support/waitaof-redis.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';

type Told = Record<string, string>;
const SAFE: Told = {
  ...{ appendonly: 'yes', appendfsync: 'always', 'no-appendfsync-on-rewrite': 'no', 'aof-load-truncated': 'no' },
  'maxmemory-policy': 'noeviction',
};
const HEALTHY: Told = {
  ...{ aof_enabled: '1', aof_last_write_status: 'ok', aof_rewrite_in_progress: '0', aof_base_size: '88' },
  maxmemory_policy: 'noeviction',
};
const like = (...patterns: RegExp[]): unknown[] => patterns.map((pattern) => expect.stringMatching(pattern));

const LATE = /does not sync to its disk within 1000 ms/;
const EVERYSEC = { appendfsync: 'everysec' };
const SAVING = { 'no-appendfsync-on-rewrite': 'yes' };
const evicting = { maxmemory_policy: 'allkeys-lru' };

it.each<[string, Told, Told, DiskReply, RegExp[]]>([
  ['the settings of the docs', {}, {}, 'syncs', []],
  ['a later rewrite', {}, { aof_rewrite_in_progress: '1' }, 'syncs', []],
  ['appendonly no', { appendonly: 'no' }, {}, 'syncs', [/appendonly is off/]],
  ['a file that INFO does not know of', {}, { aof_enabled: '0' }, 'syncs', [/appendonly is off/]],
  ['appendfsync everysec', EVERYSEC, {}, 'silent', [/appendfsync is everysec/]],
  ['appendfsync everysec and WAITAOF', EVERYSEC, {}, 'syncs', []],
  ['appendfsync everysec and a late disk', EVERYSEC, {}, 'late', [LATE]],
  ['no sync during a save', SAVING, {}, 'silent', [/no-appendfsync-on-rewrite is on/]],
  ['no sync during a save and WAITAOF', SAVING, {}, 'syncs', []],
  ['no sync during a save and a late disk', SAVING, {}, 'late', [LATE]],
  ['a disk that failed', {}, { aof_last_write_status: 'err' }, 'syncs', [/last write .* failed/]],
  [
    'a file whose first rewrite is not complete',
    {},
    { aof_rewrite_in_progress: '1', aof_base_size: '0' },
    'syncs',
    [/still being written/],
  ],
  ['eviction', { 'maxmemory-policy': 'allkeys-lru' }, {}, 'syncs', [/maxmemory-policy is allkeys-lru/]],
])('a server is judged by what it says with %s', (_, settings, info, disk, problems) => {
  const judged = judge({ settings: { ...SAFE, ...settings }, info: { ...HEALTHY, ...info }, disk });
  expect(judged.problems).toEqual(like(...problems));
  const isSlow = settings === SAVING && disk === 'syncs';
  expect(judged.warnings).toEqual(isSlow ? like(/nothing can be sent during a save/) : []);
});

it.each<[string, Told | undefined, DiskReply, RegExp[]]>([
  ['and a server that confirms writes', HEALTHY, 'syncs', []],
  ['and eviction', { ...HEALTHY, ...evicting }, 'syncs', [/maxmemory-policy is allkeys-lru/]],
  ['and no file', { ...HEALTHY, aof_enabled: '0' }, 'silent', [/appendonly is off/]],
  ['and a server that confirms no writes', HEALTHY, 'silent', [/forbids CONFIG and does not confirm writes/]],
  ['and INFO', undefined, 'syncs', [/forbids CONFIG and INFO/]],
])('a server is judged by what it says by INFO where CONFIG is forbidden %s', (_, info, disk, problems) => {
  expect(judge({ settings: undefined, info, disk }).problems).toEqual(like(...problems));
});

describe('a real server', () => {
  let server: LocalRedis;
  let redis: Redis;
  beforeAll(async () => {
    server = await startLocalRedis();
    redis = new Redis(server.url);
  });
  afterEach(async () => {
    await redis.call('ACL', 'SETUSER', 'default', '+config');
    await redis.replicaof('NO', 'ONE');
    for (const setting of ['maxmemory', 'min-replicas-to-write']) await redis.config('SET', setting, '0');
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
  });
  afterAll(async () => {
    await redis.quit();
    await server.stop();
  });
  const problems = async () => (await checkDurability(redis)).problems;

  it('is fit as it was started, and takes writes, of which the check makes none', async () => {
    const sizeOf = async () => /aof_current_size:(\d+)/.exec(await redis.info('persistence'))?.[1];
    const before = await sizeOf();
    expect(await checkServer(redis)).toEqual({
      ...{ durability: 'reply', problems: [], warnings: [] },
      ...{ name: new URL(server.url).host, following: [], listed: [] },
    });
    expect(await findWriteRefusal(redis)).toBeUndefined();
    expect([await redis.dbsize(), await sizeOf()]).toEqual([0, before]);
  });

  it('that evicts is not fit, also where it forbids CONFIG', async () => {
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.call('ACL', 'SETUSER', 'default', '-config');
    expect(await problems()).toEqual(like(/forbids CONFIG/, /maxmemory-policy is allkeys-lru/));
  });

  it('that is a replica is never taken for the master', async () => {
    await redis.replicaof('127.0.0.1', 1);
    await expect(checkDurability(redis)).rejects.toThrow('This Redis is a replica, not the master');
  });

  it.each([
    ['a replica', async () => redis.replicaof('127.0.0.1', await findFreePort()), 'it is a read-only replica', true],
    ['full', async () => redis.config('SET', 'maxmemory', '1mb'), 'it is full (maxmemory)', true],
    [
      'without replicas',
      async () => redis.config('SET', 'min-replicas-to-write', '1'),
      'too few of its replicas',
      false,
    ],
  ])(
    'that is %s refuses writes, says why, also where scripts have no flags, as in Redis 6.2',
    async (_, make, why, old) => {
      const of62 = Object.create(redis) as Redis;
      of62.eval = async () => Promise.reject(Object.assign(new Error('ERR compiling script'), { name: 'ReplyError' }));
      expect(await findWriteRefusal(of62)).toBeUndefined();
      await make();
      const refusal = { reason: expect.stringContaining(why), action: expect.stringMatching(/^[A-Z].{20,}\.$/) };
      expect(await findWriteRefusal(redis)).toEqual(refusal);
      if (old) expect(await findWriteRefusal(of62)).toEqual(refusal);
    },
  );
});

it('a server that confirms by WAITAOF is fit, and says how', async () => {
  const server = closeAfterTest(await startWaitaofRedis());
  const redis = new Redis(server.url);
  afterTest(async () => closeRedis(redis));
  expect(await checkServer(redis)).toMatchObject({ durability: 'waitaof', problems: [] });
  expect(server.asked).toEqual([['1', '0', '1000']]);
  expect(await checkServer(redis, true)).toMatchObject({ durability: 'waitaof', problems: [] });
  expect(server.asked).toHaveLength(1);
  server.reply = [0, 1];
  expect(await checkServer(redis)).toMatchObject({ durability: 'waitaof', problems: [expect.any(String)] });
});

it('a master with replicas should stop soon after it lost them', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  const redis = new Redis(servers.master.url);
  afterTest(async () => closeRedis(redis));
  for (const [replicas, lag, expected] of [
    ['0', '10', [/min-replicas-to-write is 0/]],
    ['1', '60', [/min-replicas-max-lag is 60/]],
    ['1', '0', [/min-replicas-max-lag is 0/]],
    ['1', '10', []],
  ] as const) {
    await redis.config('SET', 'min-replicas-to-write', replicas);
    await redis.config('SET', 'min-replicas-max-lag', lag);
    expect((await checkServer(redis)).warnings).toEqual(like(...expected));
    await redis.call('ACL', 'SETUSER', 'default', '-config');
    expect((await checkServer(redis)).warnings).toHaveLength(replicas === '0' || lag === '0' ? 1 : 0);
    await redis.call('ACL', 'SETUSER', 'default', '+config');
  }
});

it('the replicas of a server are read from INFO, each once', () => {
  const replica = (host: number, state = 'online', port = 6379, lag = 0) =>
    `ip=10.0.0.${host},port=${port},state=${state},offset=14,lag=${lag}`;
  const slaves = [
    replica(2, 'online', 6379, 55),
    replica(2),
    replica(3, 'wait_bgsave'),
    replica(2, 'online', 6380),
    replica(4, 'online', 6379, 4),
  ];
  const listed = Object.fromEntries(slaves.map((line, index) => [`slave${index}`, line]));
  const info = { role: 'master', connected_slaves: '5', master_replid: 'abc', ...listed };
  expect(parseReplication(info)).toEqual({
    role: 'master',
    online: ['10.0.0.2:6379', '10.0.0.2:6380', '10.0.0.4:6379'],
    following: ['10.0.0.2:6379', '10.0.0.2:6380'],
  });
  expect(parseReplication()).toEqual({ role: undefined, online: [], following: [] });
});

it.each([
  // As CLUSTER KEYSLOT says.
  ['123456789', 12_739],
  ['{payouts:42}:ledger', 2_785],
  ['{payouts:42}', 2_785],
  ['a{}b{c}', 7_353],
  ['a{{b}}c', 6_215],
  ['a}b{c', 13_587],
  ['', 0],
  ['{ü}:é', 9_552],
])('the slot of the key %j is the one that Redis Cluster gives it', (key, slot) => {
  expect(slotOf(key)).toBe(slot);
});

it('a cluster that is not reached has no server for any key', async () => {
  const redis = connectRedis('redis-cluster://127.0.0.1:1', 'commands');
  expect(findServer(redis, '{payouts:42}:ledger')).toBeUndefined();
  await closeRedis(redis);
});
