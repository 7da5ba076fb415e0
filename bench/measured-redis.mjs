import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startLocalRedis } from '../dist/sandbox/local-redis.js';

/** A rewrite of the append-only file would slow one side down and not the other. */
const NO_REWRITE = ['--auto-aof-rewrite-percentage', '0'];

/**
 * A Redis of the benchmark's own that can be asked what it did. Settings as in production (every write on disk before it
 * is acknowledged), unless `args` say otherwise.
 */
export async function startMeasuredRedis(args = []) {
  const server = await startLocalRedis({ args: [...NO_REWRITE, ...args] });
  const client = new Redis(server.url);
  const readNumber = async (section, name) =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await client.info(section))?.[1]);
  return {
    url: server.url,
    client,
    version: /redis_version:(\S+)/.exec(await client.info('server'))?.[1],
    /** All commands so far, those that scripts run included. */
    countCommands: async () => readNumber('stats', 'total_commands_processed'),
    usedMemory: async () => readNumber('memory', 'used_memory'),
    async close() {
      await client.quit();
      await server.stop();
    },
  };
}

/** Waits until fewer than `limit` commands a second are run, two seconds in a row. */
export async function untilQuiet(redis, limit) {
  for (let quiet = 0, before = await redis.countCommands(); quiet < 2;) {
    await delay(1_000);
    const now = await redis.countCommands();
    quiet = now - before < limit ? quiet + 1 : 0;
    before = now;
  }
}
