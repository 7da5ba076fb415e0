import { Redis } from 'ioredis';
import { InvalidConfigError } from '../errors.js';
import { wholeNumberField } from '../fields.js';
import type { RedisClient } from '../redis.js';
import { isWatchedBySentinels } from './find-server.js';
import type { RedisInfo } from './server-facts.js';

export interface Replication {
  /** `master`, or `slave` for a replica; undefined if the server does not say. */
  readonly role: string | undefined;
  /** Changes with every failover only. */
  readonly replicationId: string;
  readonly online: number;
}

export function parseReplication(info: RedisInfo = {}): Replication {
  const replicas = Object.entries(info).filter(([name]) => /^slave\d+$/.test(name));
  const online = replicas
    .map(([, fields]) => Object.fromEntries(fields.split(',').map((field) => field.split('=', 2))) as RedisInfo)
    .filter(({ state }) => state === 'online')
    // A reconnected replica may still be listed with its earlier connection.
    .map(({ ip, port }) => `${ip ?? ''}:${port ?? ''}`);
  return { role: info['role'], replicationId: info['master_replid'] ?? '', online: new Set(online).size };
}

/**
 * How many replicas must acknowledge a write before it counts, since each of them may become the master.
 * Counts all replicas that this process has seen following the master, even lost ones. A master that is cut off from
 * its replicas forgets them after a while, and must not pass for one that never had any.
 * With Sentinel or Redis Cluster a failover restarts the count, because the new master leads with what is left.
 * Otherwise only a restart of this process does. Sentinel always needs at least one, because it fails over by itself.
 */
export class KnownReplicas {
  readonly #fixed: number | undefined;
  readonly #lowest: number;
  readonly #failsOver: boolean;
  readonly #highest = new Map<string, number>();

  /**
   * @param fixed - the operator's number, instead of the replicas seen
   * @throws InvalidConfigError if that number is not possible
   */
  constructor(redis: RedisClient, fixed?: number) {
    const hasSentinels = isWatchedBySentinels(redis);
    this.#failsOver = hasSentinels || !(redis instanceof Redis);
    this.#lowest = hasSentinels ? 1 : 0;
    if (fixed !== undefined) checkNumber(fixed, this.#lowest);
    this.#fixed = fixed;
  }

  note({ replicationId, online }: Replication): void {
    const leader = this.#leader(replicationId);
    this.#highest.set(leader, Math.max(this.#highest.get(leader) ?? 0, online));
  }

  required({ replicationId }: Replication): number {
    return this.#fixed ?? Math.max(this.#lowest, this.#highest.get(this.#leader(replicationId)) ?? 0);
  }

  #leader(replicationId: string): string {
    return this.#failsOver ? replicationId : '';
  }
}

function checkNumber(fixed: number, lowest: number): void {
  const { error } = wholeNumberField(lowest).safeParse(fixed);
  if (error === undefined) return;
  const [issue] = error.issues;
  const why = lowest === 0 ? '' : ', because Sentinel fails over to a replica';
  throw new InvalidConfigError([{ field: 'REDIS_REPLICAS', message: `${issue?.message ?? ''}${why} (got ${fixed})` }]);
}
