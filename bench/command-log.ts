import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { SCRIPT_NAMES, scriptSource } from '../src/ledger/ledger-scripts.js';

const QUEUE_SCRIPTS = new URL('../src/queues/', import.meta.url);

export interface CountedCommand {
  readonly command: string;
  /** By a client; else a script ran it. */
  readonly isSent: boolean;
  count: number;
}

/**
 * Records each command that a Redis runs, with MONITOR: by its name, and whether a client sent it or a script ran it
 * (`INFO commandstats` does not tell the two apart). The connections that are open when it begins are those of the
 * benchmark itself: what they send does not count.
 */
export async function recordCommands(url: string) {
  const scriptNames = readScriptNames();
  const client = new Redis(url);
  const own = new Set([...String(await client.client('LIST')).matchAll(/ addr=(\S+)/g)].map(([, address]) => address));
  const monitor = await client.monitor();
  let counts = new Map<string, CountedCommand>();
  let script: string | undefined;
  monitor.on('monitor', (_time: string, [command = '', first = '']: readonly string[], source: string) => {
    const name = command.toLowerCase();
    const isInside = source === 'lua';
    const label = name.startsWith('eval') ? (scriptNames.get(name === 'eval' ? sha1(first) : first) ?? name) : name;
    // A script runs nothing but its own commands until it ends.
    if (!isInside) script = own.has(source) ? undefined : label;
    if (script === undefined) return;
    const key = isInside ? `${script} > ${name}` : label;
    const entry = counts.get(key) ?? { command: key, isSent: !isInside, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  });
  return {
    /** What was run since the last call, the most frequent first. */
    take(): CountedCommand[] {
      const taken = [...counts.values()].sort((one, other) => other.count - one.count);
      counts = new Map();
      return taken;
    },
    async close() {
      monitor.disconnect();
      await client.quit();
    },
  };
}

/** The names of scripts by the hash with which they are called: the ledger's, the queues' and BullMQ's. */
export function readScriptNames(): Map<string, string> {
  const require = createRequire(import.meta.url);
  const folder = join(dirname(require.resolve('bullmq')), 'scripts');
  const bullmq = readdirSync(folder)
    .filter((file) => /-\d+\.js$/.test(file))
    .flatMap((file) => Object.values(require(join(folder, file)) as Record<string, { name: string; content: string }>))
    .map(({ name, content }) => [sha1(content), `bullmq ${name}`] as const);
  const queues = readdirSync(QUEUE_SCRIPTS)
    .filter((file) => file.endsWith('.lua'))
    .map((file) => [sha1(readFileSync(new URL(file, QUEUE_SCRIPTS), 'utf8')), file.replace('.lua', '')] as const);
  return new Map([...SCRIPT_NAMES.map((name) => [sha1(scriptSource(name)), name] as const), ...queues, ...bullmq]);
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
