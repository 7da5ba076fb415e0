import { Redis } from 'ioredis';
import { InvalidConfigError } from '../errors.js';
import { wholeNumberField } from '../fields.js';
import type { RedisClient } from '../redis.js';
import { isWatchedBySentinels } from './find-server.js';
import type { RedisInfo } from './server-facts.js';

/** The replicas of a server, as it sees them. */
export interface Replication {
  /** `master`, or `slave` for a replica; undefined where the server does not say. */
  readonly role: string | undefined;
  /** Another one after every failover, the same for as long as one master leads. */
  readonly replicationId: string;
  /** Replicas that follow it. */
  readonly online: number;
}

/** Reads the part of INFO that is about replicas. */
export function parseReplication(info: RedisInfo = {}): Replication {
  const replicas = Object.entries(info).filter(([name]) => /^slave\d+$/.test(name));
  const online = replicas
    .map(([, fields]) => Object.fromEntries(fields.split(',').map((field) => field.split('=', 2))) as RedisInfo)
    .filter(({ state }) => state === 'online')
    // A replica that connected again may still be listed with its earlier connection.
    .map(({ ip, port }) => `${ip ?? ''}:${port ?? ''}`);
  return { role: info['role'], replicationId: info['master_replid'] ?? '', online: new Set(online).size };
}

/**
 * How many replicas have to acknowledge a write before it counts, since each of them may become the master.
 *
 * All that this process has seen following the master. One that is not there any more still counts: a master that is cut
 * off from its replicas forgets them after a while, and must not be taken for one that never had any. With Sentinel or
 * Redis Cluster a failover begins the count again, because the new master leads with what is left; behind any other
 * address only a restart of this process does. Sentinel fails over by itself, so there at least one is always needed.
 */
export class KnownReplicas {
  readonly #fixed: number | undefined;
  readonly #lowest: number;
  readonly #failsOver: boolean;
  readonly #highest = new Map<string, number>();

  /**
   * @param fixed - as many as the operator says, in place of those that were seen
   * @throws InvalidConfigError when that number is not possible
   */
  constructor(redis: RedisClient, fixed?: number) {
    const hasSentinels = isWatchedBySentinels(redis);
    this.#failsOver = hasSentinels || !(redis instanceof Redis);
    this.#lowest = hasSentinels ? 1 : 0;
    if (fixed !== undefined) checkNumber(fixed, this.#lowest);
    this.#fixed = fixed;
  }

  /** Notes what a server has just said. */
  note({ replicationId, online }: Replication): void {
    const leader = this.#leader(replicationId);
    this.#highest.set(leader, Math.max(this.#highest.get(leader) ?? 0, online));
  }

  /** How many replicas of this master have to acknowledge a write. */
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
