import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { until } from '../support/until.js';

import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { untilLeased, untilSent, worldOfTest } from './support/payout-world.js';

const KEPT = ['--appendonly', 'yes', '--appendfsync', 'always'];
/** Shorter than the quarantine, which is the time that a host has to object (A7). */
const SILENT_MS = 3_000;

it('a holder that was stopped while another host sent does not send it again from a Redis that gives it its lease back', async () => {
  const redis = closeAfterTest(await startOwnRedis(KEPT));
  const world = await worldOfTest({ redis });
  const { producer, sandbox, dir } = world;
  const startHost = async (name: string) => {
    const journalDir = join(dir, name);
    await mkdir(journalDir);
    return world.startWorker({ journalDir, environment: { TAKEOVER_QUARANTINE_MS: '10000' } });
  };
  const first = await startHost('first');
  await world.enqueue(1, 'before');
  await untilSent(world, 1);
  await until('it is completed', async () => (await producer.stats()).completed === 1);

  first.kill('SIGSTOP');
  await world.enqueue(1, 'during');
  await redis.stop();
  const copy = join(dir, 'copy');
  await cp(redis.dir, copy, { recursive: true });
  await redis.startAgain();
  const second = await startHost('second');
  await untilLeased(second);
  await untilSent(world, 2);
  await until('it is completed', async () => (await producer.stats()).completed === 2);

  await redis.stop();
  second.kill('SIGSTOP');
  await rm(redis.dir, { recursive: true });
  await cp(copy, redis.dir, { recursive: true });
  await redis.startAgain();
  first.kill('SIGCONT');
  await sleep(SILENT_MS);
  second.kill('SIGCONT');
  await second.said('contradict');
  await sleep(13_000);
  const { arrivals, duplicatePayments } = sandbox.stats();
  expect({ arrivals, duplicatePayments, log: first.log() }).toEqual({
    arrivals: 2,
    duplicatePayments: [],
    log: first.log(),
  });
}, 120_000);
