import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { JobRecords } from '../../src/queues/job-records.js';
import { PayoutQueues, QUEUE_NAMES } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { testRedisUrl } from '../support/account.js';
import { openQueueRig, type QueueRig } from './support/queue-rig.js';

let rig: QueueRig;
let records: JobRecords;
beforeEach(() => {
  rig = openQueueRig();
  records = new JobRecords(rig.account.redis);
});
afterEach(async () => {
  await rig.close();
});

describe('readKinds', () => {
  it('distinguishes jobs that can still run, jobs that have ended, and none', async () => {
    const { withdraw } = rig.queues;
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
    } else if (declared[0]?.startsWith(withdraw.toKey('')) === true && !isOfBullMq(declared)) {
      expect(declared).toContain(key);
      touched += 1;
    }
  }
  expect(touched).toBeGreaterThan(10);
});

/** Its scripts, which add the jobs, are not ours to change. */
function isOfBullMq(declared: readonly string[]): boolean {
  return declared.some((key) => key.endsWith(':events'));
}
