import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import fc from 'fast-check';
import { CompactMap, JobRecords } from '../../src/queues/job-records.js';
import { QUEUE_NAMES } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { watchedScript } from '../ledger/scripts/script-scenarios.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { rig, useRig } from './support/queue-rig.js';

useRig();

describe('readKinds', () => {
  it('distinguishes jobs that can still run, jobs that have ended, and none', async () => {
    const { withdraw } = rig.queues;
    const records = new JobRecords(rig.account.redis);
    await rig.enqueue(['completed', 'failed', 'active']);
    const connection = connectRedis(testRedisUrl(), 'queue');
    let whileActive: unknown;
    let ended = 0;
    const worker = new Worker(
      QUEUE_NAMES.withdraw,
      async (job) => {
        if (job.id === 'failed~0') throw new Error('on purpose');
        if (job.id === 'active~0') whileActive = await records.readKinds(withdraw, ['active~0']);
      },
      { connection, prefix: rig.account.connection.keys.prefix },
    );
    const note = (): void => void (ended += 1);
    worker.on('completed', note).on('failed', note);
    while (ended < 3) await delay(20);
    await worker.close();
    await closeRedis(connection);
    expect(whileActive).toEqual(['live']);

    await rig.enqueue(['waiting', aPayout('delayed', { notBefore: '2031-01-01T00:00:00Z' })]);
    const jobIds = ['completed', 'failed', 'waiting', 'delayed', 'never'].map((name) => `${name}~0`);
    expect(await records.readKinds(withdraw, jobIds)).toEqual(['dead', 'dead', 'live', 'live', 'none']);
    expect(await records.readKinds(withdraw, [])).toEqual([]);
  });
});

it('the scripts touch no key that they do not declare, since a slot of a cluster may be moving', async () => {
  const { withdraw } = rig.queues;
  await rig.enqueue(['well', 'placeless', 'hashless', aPayout('urgent', { priority: 1 })]);
  await rig.account.redis.lrem(withdraw.toKey('wait'), 0, 'placeless~0');
  await rig.account.redis.del(withdraw.toKey('hashless~0'), withdraw.toKey('urgent~0'));
  const names = readdirSync('src/queues').filter((name) => name.endsWith('.lua'));
  for (const name of names) {
    const lua = watchedScript(readFileSync(`src/queues/${name}`, 'utf8'));
    rig.account.redis.defineCommand(`payouts:${name.replace('.lua', '')}`, { lua });
  }
  expect(await rig.reconciler.reconcile('queued', new AbortController().signal)).toBe(3);
  await rig.queues.repairTimes(withdraw, { limiterMs: 1, stalledCheckMs: 1, lockMs: 1, longestDelayMs: 1 });
});

describe('the map of many jobs', () => {
  it('holds what a Map holds, whatever the texts', () => {
    const entries = fc.array(fc.tuple(fc.string({ maxLength: 12 }), fc.constantFrom('a', 'b', 'c')), { maxLength: 60 });
    fc.assert(
      fc.property(entries, fc.array(fc.string({ maxLength: 12 })), (pairs, others) => {
        const [map, compact] = [new Map(pairs), new CompactMap<string>()];
        for (const [text, value] of pairs) compact.set(text, value);
        expect(compact.size).toBe(map.size);
        for (const text of [...map.keys(), ...others]) expect(compact.get(text)).toBe(map.get(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes 255 values, and distinguishes texts that share half of their hash', () => {
    const many = new CompactMap<number>();
    for (let value = 0; value < 255; value += 1) many.set(String(value), value);
    expect(many.get('254')).toBe(254);
    expect(() => {
      many.set('one more', 255);
    }).toThrow(RangeError);
    // The first half is FNV-1a, of which these are known to collide.
    const compact = new CompactMap<string>();
    compact.set('costarring', 'a');
    compact.set('declinate', 'b');
    expect(['liquid', 'macallums', 'costarring'].map((text) => compact.get(text))).toEqual([undefined, undefined, 'a']);
  });
});
