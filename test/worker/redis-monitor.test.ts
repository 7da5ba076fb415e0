import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Clock } from '../../src/base/clock.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { KnownReplicas } from '../../src/ledger/redis-durability.js';
import { RedisMonitor } from '../../src/worker/redis-monitor.js';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { listeningLogger } from './support/send-rig.js';

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
const patientClock: Clock = { ...quickClock, sleep: async (_ms, signal) => quickClock.sleep(1e9, signal) };

let redis: RedisClient;
let watch: RedisMonitor;
let said: string[];

function startWatch(url: string, clock = quickClock): void {
  redis = connectRedis(url, 'sender');
  said = [];
  watch = new RedisMonitor(redis, new KnownReplicas(redis), clock, listeningLogger(said));
  watch.start();
  afterTest(async () => {
    await watch.stop();
    await closeRedis(redis);
  });
}

const shown = (): string[] => said.filter((line) => !line.startsWith('debug'));
const mayBegin = (): boolean => watch.hindrance(KEY) === undefined;
const untilMayBegin = async (): Promise<void> => until('sends may begin', mayBegin);
const untilRefused = async (reason: RegExp): Promise<void> =>
  until(`refused with ${String(reason)}`, () => reason.test(watch.refusal(KEY) ?? ''));

it('settings that change stop sends within the minute, until they are right again', async () => {
  const { url } = closeAfterTest(await startOwnRedis());
  const admin = new Redis(url);
  afterTest(() => {
    admin.disconnect();
  });
  startWatch(url);
  await untilMayBegin();
  for (const [name, wrong, right, reason] of [
    ['appendonly', 'no', 'yes', /appendonly is off/],
    ['appendfsync', 'everysec', 'always', /appendfsync is everysec/],
    ['no-appendfsync-on-rewrite', 'yes', 'no', /no-appendfsync-on-rewrite is on/],
    ['maxmemory-policy', 'allkeys-lru', 'noeviction', /maxmemory-policy is allkeys-lru/],
  ] as const) {
    said.length = 0;
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
  }
  // Half an hour.
  await delay(3_000);
  await admin.config('SET', 'appendonly', 'no');
  await until('it is noticed', () => watch.mayForget, 2_500);
});

describe('a connection', () => {
  it('lets nothing begin before it was checked, the first time and each time after it broke', async () => {
    const { url } = closeAfterTest(await startOwnRedis());
    startWatch(url, { ...quickClock, sleep: async (ms, signal) => quickClock.sleep(600 * ms, signal) });
    expect(watch.hindrance(KEY)).toBe('Redis has yet to be checked');
    await untilMayBegin();
    for (let iteration = 0; iteration < 3; iteration += 1) {
      const atReady = new Promise<string | undefined>((resolve) => {
        redis.prependOnceListener('ready', () => {
          resolve(watch.hindrance(KEY));
        });
      });
      if ('stream' in redis) redis.stream.destroy();
      expect(await atReady).toBe('Redis has yet to be checked');
      // At once, not with the look that comes a minute later.
      await until('checked again', mayBegin, 30_000);
    }
    expect(shown()).toEqual([]);
  });
});

describe('replicas', () => {
  it('that were seen are needed, while the master lists them and after it has forgotten them', async () => {
    const servers = closeAfterTest(await startMasterWithReplica());
    startWatch(servers.master.url);
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
  });

  it('stop sends at the first write that they do not acknowledge, not at the next look', async () => {
    const servers = closeAfterTest(await startMasterWithReplica());
    startWatch(servers.master.url, patientClock);
    await untilMayBegin();
    servers.link.silence(['requests', 'replies']);
    const write = await watch.writes.prepare(KEY);
    await redis.set(KEY, 'written');
    await expect(write.confirm()).rejects.toThrow(/only 0 of 1 replicas/);
    await untilRefused(/Only 0 of 1/);
  });
});
