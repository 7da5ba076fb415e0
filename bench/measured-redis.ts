import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startLocalRedis } from 'payout-queue/local-redis';

/** A rewrite of the append-only file would slow one side down and not the other. */
const NO_REWRITE = ['--auto-aof-rewrite-percentage', '0'];

/**
 * A Redis of the benchmark's own that can be asked what it did. Settings as in production (every write on disk before it
 * is acknowledged), unless `args` say otherwise.
 */
export async function startMeasuredRedis(args: readonly string[] = []) {
  const server = await startLocalRedis({ args: [...NO_REWRITE, ...args] });
  const client = new Redis(server.url);
  const readNumber = async (section: string, name: string): Promise<number> =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await client.info(section))?.[1]);
  return {
    url: server.url,
    address: { host: '127.0.0.1', port: server.port },
    client,
    version: /redis_version:(\S+)/.exec(await client.info('server'))?.[1],
    /** All commands so far, those that scripts run included. */
    countCommands: async (): Promise<number> => readNumber('stats', 'total_commands_processed'),
    usedMemory: async (): Promise<number> => readNumber('memory', 'used_memory'),
    async close() {
      await client.quit();
      await server.stop();
    },
  };
}

export type MeasuredRedis = Awaited<ReturnType<typeof startMeasuredRedis>>;

/** Waits until fewer than `limit` commands a second are run, two seconds in a row. */
export async function untilQuiet(redis: MeasuredRedis, limit: number): Promise<void> {
  for (let quiet = 0, before = await redis.countCommands(); quiet < 2;) {
    await delay(1_000);
    const now = await redis.countCommands();
    quiet = now - before < limit ? quiet + 1 : 0;
    before = now;
  }
}
