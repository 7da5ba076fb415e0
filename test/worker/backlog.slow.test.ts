import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis, type OwnRedis } from './support/own-redis.js';
import { openWorld } from './support/payout-world.js';

const SENDS = 12;
/** Enough for the worker, and far less than 100,000 payouts take: a heap that grew with the backlog would end it. */
const HEAP_LIMIT = '--max-old-space-size=40';
/** Of the sends alone within two seconds: a check adds many more, also on a busy machine. */
const QUIET_COMMANDS = 700;
/** How long it may take is no rule: a busy machine takes its time. */
const FIRST_CHECK_MS = 180_000;

let redis: OwnRedis;
let admin: Redis;
beforeEach(async () => {
  redis = closeAfterTest(await startOwnRedis(['--appendfsync', 'no']));
  admin = new Redis(redis.url);
  afterTest(async () => admin.quit());
});

const countCommands = async (): Promise<number> =>
  Number(/total_commands_processed:(\d+)/.exec(await admin.info('stats'))?.[1]);

/** What one payout costs while that many wait. */
async function measure(queued: number): Promise<{ commandsPerPayout: number; memoryMb: number }> {
  const world = await openWorld({ redis });
  try {
    await world.enqueue(queued);
    const environment = { ALLOW_VOLATILE_REDIS: 'true', LOG_LEVEL: 'warn', NODE_OPTIONS: HEAP_LIMIT };
    const worker = world.startWorker({ environment });
    const untilArrived = async (count: number): Promise<void> =>
      until(`${count} were sent`, () => world.sandbox.stats().arrivals >= count);
    await untilArrived(2);
    // The check that every payout has its job runs once at the start: it is over when the commands are those of the sends.
    const isQuiet = async (): Promise<boolean> => {
      const before = await countCommands();
      await delay(2_000);
      return (await countCommands()) - before < QUIET_COMMANDS;
    };
    await until('the first check is over', isQuiet, FIRST_CHECK_MS);
    // From one arrival to another, so that it is whole sends that are counted.
    const arrivals = world.sandbox.stats().arrivals + 1;
    await untilArrived(arrivals);
    const commands = await countCommands();
    await untilArrived(arrivals + SENDS);
    const commandsPerPayout = ((await countCommands()) - commands) / SENDS;
    const status = await readFile(`/proc/${worker.pid}/status`, 'utf8');
    return { commandsPerPayout, memoryMb: Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024 };
  } finally {
    await world.close();
  }
}

it('a payout costs as many Redis commands with 100,000 queued as with 100, and the process no more memory', async () => {
  const few = await measure(100);
  const many = await measure(100_000);
  // A payout is polled once more or less by chance; `npm run bench -- backlog` measures it more closely.
  expect(many.commandsPerPayout).toBeLessThanOrEqual(few.commandsPerPayout * 1.25);
  expect(many.memoryMb).toBeLessThanOrEqual(few.memoryMb + 60);
}, 400_000);
