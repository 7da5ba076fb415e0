import type { Redis } from 'ioredis';
import { RedisUnavailableError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { replyCode } from '../base/redis-errors.js';
import { GUARD_MS } from '../base/settings.js';
import { isWatchedBySentinels, listServers } from './redis-servers.js';
import { listReplicas, longerOf, nameServer } from './replica-names.js';
import type { ReplicasSeen } from './sender-ledger.js';

interface DurabilityReport {
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
type Durability = 'reply' | 'waitaof' | 'never';

export interface ServerReport extends DurabilityReport {
  readonly durability: Durability;
  /** This server, as its replicas name it. */
  readonly name: string;
  /** The replicas that follow now. */
  readonly following: readonly string[];
  /** The replicas that Sentinel, the cluster or the server itself names, down ones too where they name those. */
  readonly listed: readonly string[];
}

/** What a check of a server adds to what is known of an account's replicas. */
export function replicasSeen({ name, listed }: Pick<ServerReport, 'name' | 'listed'>): ReplicasSeen {
  return { count: listed.length, names: [...new Set([name, ...listed])].sort() };
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
  const isInCluster = info?.['cluster_enabled'] === '1';
  const listed = longerOf(await listReplicas(server, isInCluster), replication.online);
  const announced = { host: settings?.['replica-announce-ip'], port: settings?.['replica-announce-port'] };
  const name = await nameServer(server, announced, isInCluster);
  const disk = syncsBeforeReply(facts) || knownToWait ? 'syncs' : await askDisk(server);
  const { problems, warnings } = judge({ ...facts, disk });
  const hasReplicas = isWatchedBySentinels(server) || listed.length > 0;
  return {
    durability: syncsBeforeReply(facts) ? 'reply' : disk === 'silent' ? 'never' : 'waitaof',
    problems,
    warnings: hasReplicas ? [...warnings, ...judgeFencing(facts)] : warnings,
    ...{ name, following: replication.following, listed },
  };
}

/** A server's data about itself; undefined if it forbids the command. */
interface ServerFacts {
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

interface Replication {
  /** `master`, or `slave` for a replica; undefined if the server does not say. */
  readonly role: string | undefined;
  /** The addresses of connected replicas, as they announce them. */
  readonly online: readonly string[];
  /** Those of them that have reported within the last seconds. */
  readonly following: readonly string[];
}

/** A replica reports every second. One that is cut off stays connected for a minute. */
const SILENT_AFTER_S = 3;

export function parseReplication(info: RedisInfo = {}): Replication {
  const replicas = Object.entries(info).filter(([name]) => /^slave\d+$/.test(name));
  const online = replicas
    .map(([, fields]) => Object.fromEntries(fields.split(',').map((field) => field.split('=', 2))) as RedisInfo)
    .filter(({ state }) => state === 'online');
  const following = online.filter(({ lag }) => Number(lag) <= SILENT_AFTER_S);
  return { role: info['role'], online: toNames(online), following: toNames(following) };
}

/** A reconnected replica may still be listed with its earlier connection. */
function toNames(replicas: readonly RedisInfo[]): readonly string[] {
  return [...new Set(replicas.map(({ ip, port }) => `${ip ?? ''}:${port ?? ''}`))].sort();
}

/** From CONFIG GET. */
type RedisSettings = Readonly<Record<string, string>>;

/** All sections together. */
type RedisInfo = Readonly<Record<string, string>>;

const ASKED = [
  'appendonly',
  'appendfsync',
  'no-appendfsync-on-rewrite',
  'aof-load-truncated',
  'maxmemory-policy',
  'min-replicas-to-write',
  'min-replicas-max-lag',
  'replica-announce-*',
  // Redis 7 calls it `listpack`, earlier versions `ziplist`.
  'hash-max-*-value',
] as const;

/** The server's settings that matter to payouts; undefined if it forbids CONFIG. @throws the error of ioredis */
export async function readSettings(server: Redis): Promise<RedisSettings | undefined> {
  // Redis 6.2 takes one pattern at a time.
  const replies = await Promise.all(ASKED.map(async (name) => unlessForbidden(server.config('GET', name))));
  const pairs = replies.flatMap((reply) => reply ?? []);
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(pairs.flatMap((name, index) => (index % 2 === 0 ? [[name, pairs[index + 1] ?? '']] : [])));
}

/** @returns undefined if the server forbids INFO @throws the error of ioredis */
export async function readInfo(server: Redis): Promise<RedisInfo | undefined> {
  // Without a section: Redis 6.2 takes one section at a time.
  const text = await unlessForbidden(server.info());
  if (text === undefined) return undefined;
  return Object.fromEntries(
    text.split(/\r?\n/).flatMap((line) => {
      const [, name, value] = /^([^#:]+):(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value]];
    }),
  ) as RedisInfo;
}

async function unlessForbidden<Reply>(asked: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await asked;
  } catch (error) {
    const code = replyCode(error);
    if (code === undefined || ['LOADING', 'NOAUTH', 'WRONGPASS'].includes(code)) throw error;
    return undefined;
  }
}
