import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import fc from 'fast-check';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { CompactMap, JobRecords } from '../../src/queues/job-records.js';
import { PayoutQueues, QUEUE_NAMES } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
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

  it('says that Redis is unavailable instead of hanging', async () => {
    const redis = connectRedis('redis://127.0.0.1:1', 'commands');
    const queues = new PayoutQueues(connectLedger(redis, 1));
    await expect(new JobRecords(redis).readKinds(queues.withdraw, ['p~0'])).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
    });
    await queues.close();
    await closeRedis(redis);
  });
});

/** Reads what Redis does, as MONITOR shows it, until it is told to stop. */
async function monitorRedis(): Promise<{ stop(): Promise<string[][]> }> {
  const { hostname, port } = new URL(testRedisUrl());
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const until = async (said: string): Promise<void> => {
    while (!text.includes(said)) await delay(10);
  };
  socket.write('MONITOR\r\n');
  await until('+OK');
  return {
    async stop() {
      await rig.account.redis.echo('monitored');
      await until('"echo" "monitored"');
      socket.destroy();
      // +<time> [<database> <address, or lua>] "command" "argument" …
      return text.split('\r\n').map((line) => {
        const source = / lua\] /.test(line) ? 'lua' : 'client';
        return [source, ...[...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, argument = '']) => argument)];
      });
    },
  };
}

it('the scripts touch no key that they do not declare, since a slot of a cluster may be moving', async () => {
  const { withdraw } = rig.queues;
  // Its scripts, which add the jobs, are not ours to change.
  const isOfBullMq = (key: string): boolean => key.endsWith(':events');
  await rig.enqueue(['well', 'placeless', 'hashless', aPayout('urgent', { priority: 1 })]);
  await rig.account.redis.lrem(withdraw.toKey('wait'), 0, 'placeless~0');
  await rig.account.redis.del(withdraw.toKey('hashless~0'), withdraw.toKey('urgent~0'));
  const monitor = await monitorRedis();
  expect(await rig.reconciler.reconcile('queued', new AbortController().signal)).toBe(3);
  await rig.queues.repairTimes(withdraw, { limiterMs: 1, stalledCheckMs: 1, lockMs: 1, longestDelayMs: 1 });
  let declared: readonly string[] = [];
  let touched = 0;
  for (const [source, command, key = '', keyCount, ...rest] of await monitor.stop()) {
    if (source === 'client') {
      const isScript = command === 'evalsha' || command === 'eval';
      declared = isScript ? rest.slice(0, Number(keyCount)) : [];
    } else if (declared[0]?.startsWith(withdraw.toKey('')) === true && !declared.some(isOfBullMq)) {
      expect(declared).toContain(key);
      touched += 1;
    }
  }
  expect(touched).toBeGreaterThan(10);
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

  it('takes 255 values', () => {
    const compact = new CompactMap<number>();
    for (let value = 0; value < 255; value += 1) compact.set(String(value), value);
    expect(compact.get('254')).toBe(254);
    expect(() => {
      compact.set('one more', 255);
    }).toThrow(RangeError);
  });

  it('distinguishes texts that share half of their hash', () => {
    // The first half is FNV-1a, of which these are known to collide.
    const compact = new CompactMap<string>();
    compact.set('costarring', 'a');
    compact.set('declinate', 'b');
    expect(['liquid', 'macallums', 'costarring'].map((text) => compact.get(text))).toEqual([undefined, undefined, 'a']);
  });
});
