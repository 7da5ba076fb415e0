import type { Redis } from 'ioredis';
import { GUARD_MS } from '../account-settings.js';
import { RedisUnavailableError } from '../errors.js';
import type { RedisClient } from '../redis.js';
import { isWatchedBySentinels, listServers } from './find-server.js';
import { parseReplication, type Replication } from './known-replicas.js';
import { readInfo, readSettings, type RedisInfo, type RedisSettings } from './server-facts.js';

export interface DurabilityReport {
  /** Why this Redis may forget; while there is any reason, nothing is sent. */
  readonly problems: readonly string[];
  /** Advice that concerns no promise. */
  readonly warnings: readonly string[];
}

/**
 * How a write is known to be on disk.
 * - `reply`: the server replies only after it (`appendfsync always`).
 * - `waitaof`: WAITAOF confirms it.
 * - `never`: the server does not say.
 */
export type Durability = 'reply' | 'waitaof' | 'never';

export interface ServerReport extends DurabilityReport {
  readonly durability: Durability;
  readonly replication: Replication;
}

/**
 * For a cluster, checks all masters; the worst counts.
 * @throws RedisUnavailableError if no server is known, or one is a replica; otherwise the error of ioredis
 */
export async function checkDurability(redis: RedisClient): Promise<DurabilityReport> {
  const servers = listServers(redis);
  // A cluster that is not reached yet has no servers, and without servers there would be no problem.
  if (servers.length === 0) throw new RedisUnavailableError('The Redis Cluster is not reached yet');
  const reports = await Promise.all(servers.map(async (server) => checkServer(server)));
  return {
    problems: [...new Set(reports.flatMap((report) => report.problems))],
    warnings: [...new Set(reports.flatMap((report) => report.warnings))],
  };
}

/**
 * @param knownToWait - true if WAITAOF has confirmed a sync on this connection before
 * @throws RedisUnavailableError if it is a replica; otherwise the error of ioredis
 */
export async function checkServer(server: Redis, knownToWait = false): Promise<ServerReport> {
  const [settings, info] = await Promise.all([readSettings(server), readInfo(server)]);
  const replication = parseReplication(info);
  if (replication.role === 'slave') throw new RedisUnavailableError('This Redis is a replica, not the master');
  const facts = { settings, info };
  const disk = syncsBeforeReply(facts) || knownToWait ? 'syncs' : await askDisk(server);
  const { problems, warnings } = judge({ ...facts, disk });
  const hasReplicas = isWatchedBySentinels(server) || replication.online > 0;
  return {
    durability: syncsBeforeReply(facts) ? 'reply' : disk === 'silent' ? 'never' : 'waitaof',
    problems,
    warnings: hasReplicas ? [...warnings, ...judgeFencing(facts)] : warnings,
    replication,
  };
}

/** A server's data about itself; undefined if it forbids the command. */
export interface ServerFacts {
  readonly settings: RedisSettings | undefined;
  readonly info: RedisInfo | undefined;
}

/** WAITAOF's result: all is on disk, not all in time, or the server does not know WAITAOF. */
export type DiskReply = 'syncs' | 'late' | 'silent';

export function judge(facts: ServerFacts & { readonly disk: DiskReply }): DurabilityReport {
  const { settings, info } = facts;
  const warnings: string[] = [];
  if (settings?.['aof-load-truncated'] === 'yes') {
    warnings.push('aof-load-truncated is on, so a cut-off file is loaded silently: set `aof-load-truncated no`');
  }
  if (settings?.['no-appendfsync-on-rewrite'] === 'yes' && facts.disk === 'syncs') {
    warnings.push(
      'no-appendfsync-on-rewrite is on, so nothing can be sent during a save: set `no-appendfsync-on-rewrite no`',
    );
  }
  return {
    problems: [findDiskProblem(facts), findWriteProblem(info), findEviction(facts)].filter(
      (problem) => problem !== undefined,
    ),
    warnings,
  };
}

/** True if a reply means that the write is on disk, even while Redis saves or rewrites its file. */
function syncsBeforeReply({ settings }: ServerFacts): boolean {
  return (
    settings?.['appendonly'] === 'yes' &&
    settings['appendfsync'] === 'always' &&
    settings['no-appendfsync-on-rewrite'] !== 'yes'
  );
}

function findDiskProblem(facts: ServerFacts & { readonly disk: DiskReply }): string | undefined {
  const { settings, info, disk } = facts;
  if (settings?.['appendonly'] === 'no' || info?.['aof_enabled'] === '0') {
    return 'appendonly is off, so a restart forgets what was sent: set `appendonly yes` and `appendfsync always`';
  }
  if (disk === 'syncs') return undefined;
  if (disk === 'late') return `it does not sync to its disk within ${GUARD_MS} ms: look at its log and its disk`;
  if (settings?.['appendfsync'] === undefined) {
    return 'it forbids CONFIG and does not confirm writes by WAITAOF, so nobody can tell what it keeps';
  }
  if (settings['appendfsync'] !== 'always') {
    return `appendfsync is ${settings['appendfsync']}, so a crash forgets the last second: set \`appendfsync always\``;
  }
  return 'no-appendfsync-on-rewrite is on, so a crash during a save forgets what was sent: set `no-appendfsync-on-rewrite no`';
}

function findWriteProblem(info: RedisInfo | undefined): string | undefined {
  if (info?.['aof_last_write_status'] === 'err') {
    return 'its last write to the append-only file failed: look at its log and its disk';
  }
  // A restart reads the file only after the first rewrite since `CONFIG SET appendonly yes` has ended.
  if (info?.['aof_rewrite_in_progress'] === '1' && info['aof_base_size'] === '0') {
    return 'its first append-only file is still being written: wait until it is complete';
  }
  return undefined;
}

function findEviction({ settings, info }: ServerFacts): string | undefined {
  const policy = settings?.['maxmemory-policy'] ?? info?.['maxmemory_policy'];
  if (policy === 'noeviction') return undefined;
  if (policy === undefined)
    return 'it forbids CONFIG and INFO, so nobody can tell whether it drops payouts when it is full';
  return `maxmemory-policy is ${policy}, so a full Redis drops payouts: set \`maxmemory-policy noeviction\``;
}

const MAX_LAG_S = 10;

/** A master that is cut off from its replicas should soon refuse writes: a failover loses all of them. */
function judgeFencing({ settings, info }: ServerFacts): string[] {
  const advice = `set \`min-replicas-to-write 1\` and \`min-replicas-max-lag\` to ${MAX_LAG_S} or less`;
  const replicas = Number(settings?.['min-replicas-to-write'] ?? ('min_slaves_good_slaves' in (info ?? {}) ? 1 : 0));
  if (replicas < 1)
    return [
      `min-replicas-to-write is 0, so a master without its replicas takes payouts that a failover loses: ${advice}`,
    ];
  const lagS = Number(settings?.['min-replicas-max-lag'] ?? MAX_LAG_S);
  if (lagS >= 1 && lagS <= MAX_LAG_S) return [];
  return [`min-replicas-max-lag is ${lagS}, so a master without its replicas takes payouts for too long: ${advice}`];
}

async function askDisk(server: Redis): Promise<DiskReply> {
  try {
    const [here] = (await server.call('WAITAOF', 1, 0, GUARD_MS)) as [number];
    return here >= 1 ? 'syncs' : 'late';
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return 'silent';
    throw error;
  }
}
