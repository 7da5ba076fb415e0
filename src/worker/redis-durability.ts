import { Redis } from 'ioredis';
import { RedisUnavailableError } from '../errors.js';
import type { Durability } from '../ledger/redis-sender-ledger.js';
import type { RedisClient } from '../redis.js';

/** Whether payouts may be sent on this Redis, and how a write is known to be on disk. */
export interface DurabilityReport {
  readonly durability: Durability;
  /** What makes this Redis one that may forget; nothing is sent while there is any. */
  readonly problems: readonly string[];
  /** What should be mended although it breaks no promise. */
  readonly warnings: readonly string[];
}

/** The settings as CONFIG GET gives them, or undefined where the server forbids to ask. */
export type RedisSettings = Readonly<Record<string, string>>;

const ASKED = ['appendonly', 'appendfsync', 'maxmemory-policy', 'aof-load-truncated'];
const WAITAOF_TIMEOUT_MS = 1_000;

/**
 * Asks Redis whether it keeps what it was told. A cluster is asked node by node, and the worst answer counts.
 * @throws what ioredis throws when Redis is away
 */
export async function checkDurability(redis: RedisClient): Promise<DurabilityReport> {
  const nodes = redis instanceof Redis ? [redis] : redis.nodes('master');
  // A cluster that is not reached yet has no nodes, and no node has no fault.
  if (nodes.length === 0) throw new RedisUnavailableError('The Redis Cluster is not reached yet');
  const reports = await Promise.all(nodes.map(checkNode));
  return {
    durability: reports.every((report) => report.durability === 'reply') ? 'reply' : 'waitaof',
    problems: [...new Set(reports.flatMap((report) => report.problems))],
    warnings: [...new Set(reports.flatMap((report) => report.warnings))],
  };
}

async function checkNode(redis: Redis): Promise<DurabilityReport> {
  const settings = await readSettings(redis);
  const always = settings?.['appendonly'] === 'yes' && settings['appendfsync'] === 'always';
  return judge(settings, always ? false : await canWaitForDisk(redis));
}

/**
 * Judges a server by its settings.
 * @param canWait - whether WAITAOF confirmed a sync to its disk
 */
export function judge(settings: RedisSettings | undefined, canWait: boolean): DurabilityReport {
  const problems: string[] = [];
  const warnings: string[] = [];
  const always = settings?.['appendonly'] === 'yes' && settings['appendfsync'] === 'always';
  if (settings === undefined) {
    if (!canWait)
      problems.push('it forbids CONFIG and does not confirm writes by WAITAOF, so nobody can tell what it keeps');
  } else if (settings['appendonly'] !== 'yes') {
    problems.push(
      'appendonly is off, so a restart forgets what was sent: set `appendonly yes` and `appendfsync always`',
    );
  } else if (!always && !canWait) {
    problems.push(
      `appendfsync is ${settings['appendfsync'] ?? 'unknown'}, so a crash forgets the last second: set \`appendfsync always\``,
    );
  }
  const policy = settings?.['maxmemory-policy'] ?? 'noeviction';
  if (policy !== 'noeviction') {
    problems.push(`maxmemory-policy is ${policy}, so a full Redis drops payouts: set \`maxmemory-policy noeviction\``);
  }
  if (settings?.['aof-load-truncated'] === 'yes') {
    warnings.push('aof-load-truncated is on, so a cut-off file is loaded without a word: set `aof-load-truncated no`');
  }
  return { durability: always ? 'reply' : 'waitaof', problems, warnings };
}

async function readSettings(redis: Redis): Promise<RedisSettings | undefined> {
  try {
    const pairs = await redis.config('GET', ...(ASKED as [string, ...string[]]));
    if (pairs.length === 0) return undefined;
    return Object.fromEntries(
      pairs.flatMap((name, index) => (index % 2 === 0 ? [[name, pairs[index + 1] ?? '']] : [])),
    );
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return undefined;
    throw error;
  }
}

async function canWaitForDisk(redis: Redis): Promise<boolean> {
  try {
    const [synced] = (await redis.call('WAITAOF', 1, 0, WAITAOF_TIMEOUT_MS)) as [number];
    return synced >= 1;
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return false;
    throw error;
  }
}
