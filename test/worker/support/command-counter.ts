import { Redis } from 'ioredis';

/** Commands that other clients have sent to a Redis, by name; those that scripts run are not counted. */
export interface CommandCounter {
  /** What was sent since the last call, a second. */
  take(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/** Counts with MONITOR. The connections that are open when it begins do not count. */
export async function countCommands(url: string): Promise<CommandCounter> {
  const client = new Redis(url);
  const list = String(await client.client('LIST'));
  const own = new Set(Array.from(list.matchAll(/ addr=(\S+)/g), ([, address]) => address));
  const monitor = await client.monitor();
  let counts = new Map<string, number>();
  let since = performance.now();
  monitor.on('monitor', (_time: string, [name = '']: string[], source: string) => {
    if (source === 'lua' || own.has(source)) return;
    counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  });
  return {
    take() {
      const seconds = (performance.now() - since) / 1_000;
      const taken = new Map([...counts].map(([name, count]) => [name, count / seconds]));
      counts = new Map();
      since = performance.now();
      return taken;
    },
    async close() {
      monitor.disconnect();
      await client.quit();
    },
  };
}
