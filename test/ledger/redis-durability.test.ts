import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { checkDurability, checkServer, judge, type DiskReply } from '../../src/ledger/redis-durability.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { startWaitaofRedis } from '../support/waitaof-redis.js';

const SAFE = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'aof-load-truncated': 'no',
  'maxmemory-policy': 'noeviction',
};
const HEALTHY = {
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  aof_rewrite_in_progress: '0',
  aof_base_size: '88',
  maxmemory_policy: 'noeviction',
};

function problemsOf(
  settings: Record<string, string> | undefined,
  info: Record<string, string> | undefined = HEALTHY,
  disk: DiskReply = 'silent',
): readonly string[] {
  return judge({ settings, info, disk }).problems;
}

describe('a server is judged by what it says', () => {
  it('and is fit with the settings that the docs ask for', () => {
    expect(judge({ settings: SAFE, info: HEALTHY, disk: 'syncs' })).toEqual({ problems: [], warnings: [] });
  });

  it.each([
    ['appendonly no', { ...SAFE, appendonly: 'no' }, HEALTHY, /appendonly is off/],
    ['an append-only file that INFO does not know of', SAFE, { ...HEALTHY, aof_enabled: '0' }, /appendonly is off/],
    ['appendfsync everysec', { ...SAFE, appendfsync: 'everysec' }, HEALTHY, /appendfsync is everysec/],
    [
      'no sync during a save',
      { ...SAFE, 'no-appendfsync-on-rewrite': 'yes' },
      HEALTHY,
      /no-appendfsync-on-rewrite is on/,
    ],
    ['a disk that failed', SAFE, { ...HEALTHY, aof_last_write_status: 'err' }, /last write .* failed/],
    [
      'an append-only file whose first rewrite is not complete',
      SAFE,
      { ...HEALTHY, aof_rewrite_in_progress: '1', aof_base_size: '0' },
      /still being written/,
    ],
    ['eviction', { ...SAFE, 'maxmemory-policy': 'allkeys-lru' }, HEALTHY, /maxmemory-policy is allkeys-lru/],
  ])('and may forget with %s', (_, settings, info, problem) => {
    const disk =
      settings.appendfsync === 'always' && settings['no-appendfsync-on-rewrite'] === 'no' ? 'syncs' : 'silent';
    expect(problemsOf(settings, info, disk)).toEqual([expect.stringMatching(problem)]);
  });

  it('and a later rewrite is no trouble', () => {
    expect(problemsOf(SAFE, { ...HEALTHY, aof_rewrite_in_progress: '1' }, 'syncs')).toEqual([]);
  });

  it.each([{ appendfsync: 'everysec' }, { 'no-appendfsync-on-rewrite': 'yes' }])(
    'and is fit with %j where it confirms by WAITAOF, but not while its disk is late',
    (change) => {
      expect(problemsOf({ ...SAFE, ...change }, HEALTHY, 'syncs')).toEqual([]);
      expect(problemsOf({ ...SAFE, ...change }, HEALTHY, 'late')).toEqual([
        expect.stringMatching(/does not sync to its disk within 1000 ms/),
      ]);
    },
  );

  it('and an operator is told what WAITAOF costs during a save', () => {
    const settings = { ...SAFE, 'no-appendfsync-on-rewrite': 'yes' };
    expect(judge({ settings, info: HEALTHY, disk: 'syncs' }).warnings).toEqual([
      expect.stringMatching(/nothing can be sent during a save/),
    ]);
  });

  it('by INFO where CONFIG is forbidden', () => {
    expect(problemsOf(undefined, HEALTHY, 'syncs')).toEqual([]);
    expect(problemsOf(undefined, { ...HEALTHY, maxmemory_policy: 'allkeys-lru' }, 'syncs')).toEqual([
      expect.stringMatching(/maxmemory-policy is allkeys-lru/),
    ]);
    expect(problemsOf(undefined, { ...HEALTHY, aof_enabled: '0' })).toEqual([
      expect.stringMatching(/appendonly is off/),
    ]);
    expect(problemsOf(undefined)).toEqual([expect.stringMatching(/forbids CONFIG and does not confirm writes/)]);
    expect(problemsOf(undefined, undefined as never, 'syncs')).toEqual([]);
  });

  it('and not at all where INFO is forbidden too', () => {
    expect(judge({ settings: undefined, info: undefined, disk: 'syncs' }).problems).toEqual([
      expect.stringMatching(/forbids CONFIG and INFO/),
    ]);
  });
});

describe('a real server', () => {
  let server: LocalRedis;
  let redis: Redis;
  let admin: Redis;
  beforeEach(async () => {
    server = await startLocalRedis();
    [redis, admin] = [new Redis(server.url), new Redis(server.url)];
  });
  afterEach(async () => {
    redis.disconnect();
    admin.disconnect();
    await server.stop();
  });

  it('is fit as it was started, and is not with no-appendfsync-on-rewrite or without its file', async () => {
    expect(await checkServer(redis)).toEqual({
      durability: 'reply',
      problems: [],
      warnings: [],
      replication: { role: 'master', replicationId: expect.stringMatching(/^[0-9a-f]{40}$/), online: 0 },
    });
    await admin.config('SET', 'no-appendfsync-on-rewrite', 'yes');
    expect((await checkDurability(redis)).problems).toEqual([expect.stringMatching(/no-appendfsync-on-rewrite/)]);
    await admin.config('SET', 'no-appendfsync-on-rewrite', 'no');
    await admin.config('SET', 'appendonly', 'no');
    expect((await checkDurability(redis)).problems).toEqual([expect.stringMatching(/appendonly is off/)]);
  });

  it('that forbids CONFIG shows its eviction policy all the same', async () => {
    await admin.call('ACL', 'SETUSER', 'default', '-config');
    expect((await checkDurability(redis)).problems).toEqual([expect.stringMatching(/forbids CONFIG/)]);
    await server.stop();
    server = await startLocalRedis({ port: server.port, args: ['--maxmemory-policy', 'allkeys-lru'] });
    await admin.call('ACL', 'SETUSER', 'default', '-config');
    expect((await checkDurability(redis)).problems).toEqual([
      expect.stringMatching(/forbids CONFIG/),
      expect.stringMatching(/maxmemory-policy is allkeys-lru/),
    ]);
  });

  it('that is a replica is never taken for the master', async () => {
    await admin.replicaof('127.0.0.1', 1);
    await expect(checkDurability(redis)).rejects.toThrow('This Redis is a replica, not the master');
  });
});

it('a server that confirms by WAITAOF is fit, and says how', async () => {
  const server = await startWaitaofRedis();
  const redis = new Redis(server.url);
  try {
    expect(await checkServer(redis)).toMatchObject({ durability: 'waitaof', problems: [] });
    expect(server.asked).toEqual([['1', '0', '1000']]);
    expect(await checkServer(redis, true)).toMatchObject({ durability: 'waitaof', problems: [] });
    expect(server.asked).toHaveLength(1);
    server.reply = [0, 1];
    expect(await checkServer(redis)).toMatchObject({ durability: 'waitaof', problems: [expect.any(String)] });
  } finally {
    redis.disconnect();
    await server.close();
  }
});

describe('a master with replicas', () => {
  it.each([
    ['0', '10', [/min-replicas-to-write is 0/]],
    ['1', '60', [/min-replicas-max-lag is 60/]],
    ['1', '0', [/min-replicas-max-lag is 0/]],
    ['1', '10', []],
  ])('should stop soon after it lost them: min-replicas-to-write %s, max-lag %s', async (replicas, lag, expected) => {
    const settings = ['--min-replicas-to-write', replicas, '--min-replicas-max-lag', lag];
    const servers = await startMasterWithReplica(settings);
    const server = servers.master;
    const redis = new Redis(server.url);
    try {
      expect((await checkServer(redis)).warnings).toEqual(expected.map((words) => expect.stringMatching(words)));
      await redis.call('ACL', 'SETUSER', 'default', '-config');
      const { warnings } = await checkServer(redis);
      expect(warnings).toHaveLength(replicas === '0' || lag === '0' ? 1 : 0);
    } finally {
      redis.disconnect();
      await servers.close();
    }
  });
});
