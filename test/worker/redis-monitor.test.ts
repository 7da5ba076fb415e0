import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Clock } from '../../src/base/clock.js';
import { KnownReplicas } from '../../src/ledger/redis-durability.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { RedisMonitor } from '../../src/worker/redis-monitor.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { startMasterWithReplica, type MasterWithReplica } from '../support/replicated-redis.js';
import { startOwnRedis, type OwnRedis } from './support/own-redis.js';
import { listeningLogger } from './support/send-rig.js';
import { until } from '../support/until.js';

const KEY = '{payouts:42}:ledger';

/** A minute of it is 100 ms. */
const quickClock: Clock = {
  now: () => performance.now() * 600,
  wallNow: () => Date.now(),
  async sleep(ms, signal) {
    await delay(ms / 600, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  },
};

/** Nothing happens because of it. */
const patientClock: Clock = {
  ...quickClock,
  sleep: async (_ms, signal) => quickClock.sleep(1e9, signal),
};

let redis: RedisClient;
let watch: RedisMonitor;
let said: string[];

function startWatch(url: string, clock: Clock, fixed?: number): void {
  redis = connectRedis(url, 'sender');
  said = [];
  watch = new RedisMonitor(redis, new KnownReplicas(redis, fixed), clock, listeningLogger(said));
  watch.start();
}

afterEach(async () => {
  await watch.stop();
  await closeRedis(redis);
});

/** What an operator sees. */
const shown = (): string[] => said.filter((line) => !line.startsWith('debug'));
const mayBegin = (): boolean => watch.hindrance(KEY) === undefined;
const untilMayBegin = async (): Promise<void> => until('sends may begin', mayBegin);
const untilRefused = async (reason: RegExp): Promise<void> =>
  until(`refused with ${String(reason)}`, () => reason.test(watch.refusal(KEY) ?? ''));

describe('settings that change while the worker runs', () => {
  let server: LocalRedis;
  let admin: Redis;
  beforeEach(async () => {
    server = await startLocalRedis();
    admin = connectAdmin(server.port);
    startWatch(server.url, quickClock);
    await untilMayBegin();
  });
  afterEach(async () => {
    admin.disconnect();
    await server.stop();
  });

  it.each([
    ['appendonly', 'no', 'yes', /appendonly is off/],
    ['appendfsync', 'everysec', 'always', /appendfsync is everysec/],
    ['no-appendfsync-on-rewrite', 'yes', 'no', /no-appendfsync-on-rewrite is on/],
    ['maxmemory-policy', 'allkeys-lru', 'noeviction', /maxmemory-policy is allkeys-lru/],
  ])('stop sends within the minute, until they are right again: %s %s', async (name, wrong, right, reason) => {
    await admin.config('SET', name, wrong);
    await untilRefused(reason);
    expect(watch.hindrance(KEY)).toBe(watch.refusal(KEY));
    expect(watch.mayForget).toBe(true);
    await admin.config('SET', name, right);
    await untilMayBegin();
    expect(watch.mayForget).toBe(false);
    // With appendonly the reason changes on the way, because its first file has to be written.
    expect(new Set(shown().slice(0, -1))).toEqual(new Set(['error nothing is sent, because Redis may lose it']));
    expect(shown().at(-1)).toBe('info Redis keeps its writes again; sends may begin');
  });

  it('are looked at every minute, however long they have been right', async () => {
    // Half an hour.
    await delay(3_600);
    await admin.config('SET', 'appendonly', 'no');
    await until('it is noticed', () => watch.mayForget, 2_500);
  });

  it('are not said to be right while Redis cannot be asked', async () => {
    await admin.config('SET', 'appendonly', 'no');
    await untilRefused(/appendonly/);
    await server.stop();
    await delay(500);
    expect(mayBegin()).toBe(false);
    expect(shown()).toEqual(['error nothing is sent, because Redis may lose it']);
  });
});

describe('a connection', () => {
  let server: OwnRedis;
  beforeEach(async () => {
    server = await startOwnRedis();
  });
  afterEach(async () => server.close());

  it('lets nothing begin before it was checked, the first time and each time after it broke', async () => {
    const slow: Clock = {
      ...quickClock,
      sleep: async (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
    };
    startWatch(server.url, slow);
    expect(watch.hindrance(KEY)).toBe('Redis has yet to be checked');
    await untilMayBegin();
    for (let iteration = 0; iteration < 3; iteration += 1) {
      let atReady: string | undefined;
      const ready = new Promise<void>((resolve) => {
        redis.prependOnceListener('ready', () => {
          atReady = watch.hindrance(KEY);
          resolve();
        });
      });
      if ('stream' in redis) redis.stream.destroy();
      await ready;
      expect(atReady).toBe('Redis has yet to be checked');
      // At once, not with the look that comes a minute later.
      await until('checked again', mayBegin, 30_000);
    }
    expect(shown()).toEqual([]);
  });

  it('is checked also while nobody asks', async () => {
    startWatch(server.url, patientClock);
    await untilMayBegin();
    await server.stop();
    await server.startAgain(['--appendfsync', 'no']);
    await untilRefused(/appendfsync is no/);
  });

  it('to a server that was restarted with other settings is refused at once, and healed once they are right', async () => {
    startWatch(server.url, quickClock);
    await untilMayBegin();
    await server.stop();
    await until('it is noticed', () => !mayBegin());
    await server.startAgain(['--appendfsync', 'no']);
    await untilRefused(/appendfsync is no/);
    const admin = new Redis(server.url);
    await admin.config('SET', 'appendfsync', 'always');
    admin.disconnect();
    await untilMayBegin();
  });
});

describe('replicas', () => {
  let servers: MasterWithReplica;
  beforeEach(async () => {
    servers = await startMasterWithReplica();
  });
  afterEach(async () => servers.close());

  it('that were seen are needed, while the master lists them and after it has forgotten them', async () => {
    startWatch(servers.master.url, quickClock);
    await untilMayBegin();
    expect(watch.missingReplicas).toBe(0);
    servers.link.silence(['requests', 'replies']);
    await redis.set(KEY, 'what the replica does not hear of');
    await untilRefused(/Only 0 of 1 replicas of Redis acknowledge writes/);
    servers.link.cut();
    await servers.untilReplica('gone');
    await delay(500);
    expect(watch.refusal(KEY)).toMatch(/Only 0 of 1 replicas/);
    expect([watch.missingReplicas, watch.mayForget]).toEqual([1, false]);
    servers.link.heal('never');
    await untilMayBegin();
    expect(watch.missingReplicas).toBe(0);
    expect(said.filter((line) => line.startsWith('error'))).toHaveLength(1);
  });

  it('that the operator does not count may be gone', async () => {
    startWatch(servers.master.url, quickClock, 0);
    servers.link.cut();
    await servers.untilReplica('gone');
    await untilMayBegin();
  });

  it('stop sends at the first write that they do not acknowledge, not at the next look', async () => {
    startWatch(servers.master.url, patientClock);
    await untilMayBegin();
    servers.link.silence(['requests', 'replies']);
    const write = await watch.writes.prepare(KEY);
    await redis.set(KEY, 'written');
    await expect(write.confirm()).rejects.toThrow(/only 0 of 1 replicas/);
    expect(watch.hindrance(KEY)).toBeDefined();
    await untilRefused(/Only 0 of 1/);
  });
});
