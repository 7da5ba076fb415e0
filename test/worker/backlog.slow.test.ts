import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { endAllWorkers } from './support/worker-process.js';
import { openWorld } from './support/payout-world.js';
import { until } from '../support/until.js';

let redis: LocalRedis;
let admin: Redis;

beforeEach(async () => {
  redis = await startLocalRedis({ args: ['--appendfsync', 'no'] });
  admin = new Redis(redis.url);
});

afterEach(async () => {
  await endAllWorkers();
  await admin.quit();
  await redis.stop();
});

const SENDS = 12;

/** Enough for the worker, and far less than 100,000 payouts take: a heap that grew with the backlog would end it. */
const HEAP_LIMIT = '--max-old-space-size=40';

/** Of the sends alone within two seconds: a check adds many more, also on a busy machine. */
const QUIET_COMMANDS = 700;

/** How long it may take is no rule: a busy machine takes its time. */
const FIRST_CHECK_MS = 180_000;

/** What one payout costs while that many wait. */
async function measure(queued: number): Promise<{ commandsPerPayout: number; memoryMb: number }> {
  const world = await openWorld({ redis });
  try {
    await world.enqueue(queued);
    const worker = world.startWorker({
      environment: { ALLOW_VOLATILE_REDIS: 'true', LOG_LEVEL: 'warn', NODE_OPTIONS: HEAP_LIMIT },
    });
    await until('sending has begun', () => world.sandbox.stats().arrivals >= 2);
    // The check that every payout has its job runs once at the start: it is over when the commands are those of the sends.
    await until(
      'the first check is over',
      async () => {
        const before = await countCommands();
        await delay(2_000);
        return (await countCommands()) - before < QUIET_COMMANDS;
      },
      FIRST_CHECK_MS,
    );
    // From one arrival to another, so that it is whole sends that are counted.
    const arrivals = world.sandbox.stats().arrivals + 1;
    await until('the next was sent', () => world.sandbox.stats().arrivals >= arrivals);
    const commands = await countCommands();
    await until(`${SENDS} more were sent`, () => world.sandbox.stats().arrivals >= arrivals + SENDS);
    const commandsPerPayout = ((await countCommands()) - commands) / SENDS;
    return { commandsPerPayout, memoryMb: await readMemoryMb(worker.pid) };
  } finally {
    await endAllWorkers();
    await world.close();
  }
}

async function countCommands(): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await admin.info('stats'))?.[1]);
}

async function readMemoryMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

it('a payout costs as many Redis commands with 100,000 queued as with 100, and the process no more memory', async () => {
  const few = await measure(100);
  const many = await measure(100_000);
  // A payout is polled once more or less by chance; `npm run bench -- backlog` measures it more closely.
  expect(many.commandsPerPayout).toBeLessThanOrEqual(few.commandsPerPayout * 1.25);
  expect(many.memoryMb).toBeLessThanOrEqual(few.memoryMb + 60);
}, 400_000);
