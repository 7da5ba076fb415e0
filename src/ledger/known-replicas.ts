import { Redis } from 'ioredis';
import { InvalidConfigError } from '../base/errors.js';
import { wholeNumberField } from '../base/fields.js';
import type { RedisClient } from '../base/redis.js';
import type { LedgerConnection } from './ledger-connection.js';
import { isWatchedBySentinels } from './redis-durability.js';
import { longerOf } from './replica-names.js';
import type { ReplicasSeen } from './sender-ledger.js';

/** More is no number of replicas, but an altered or mistyped one. */
export const MAX_REPLICAS = 999;

const NONE: ReplicasSeen = { count: 0, names: [] };

/**
 * How many replicas must acknowledge a write of an account before it counts, since each of them may become the master.
 *
 * The number is a fact of the account. It is in the ledger, and in each worker's send journal, which a Redis that came
 * back older cannot lower. What INFO, Sentinel or the cluster shows now, and `REDIS_REPLICAS`, may only raise it. No
 * restart, new process or failover lowers it: only an operator does.
 */
export class KnownReplicas {
  /** Whether Sentinel, the cluster or the operator tells of all: a Redis behind one address shows those that follow. */
  readonly isComplete: boolean;
  readonly #lowest: number;
  readonly #accounts = new Map<string, AccountReplicas>();

  /**
   * @param fixed - the operator's number for this process; undefined if none was given
   * @throws InvalidConfigError if that number is not possible
   */
  constructor(redis: RedisClient, fixed?: number) {
    // Sentinel fails over by itself, so a master without a replica cannot be meant.
    const lowest = redis instanceof Redis && isWatchedBySentinels(redis) ? 1 : 0;
    if (fixed !== undefined) requireNumber(fixed);
    this.#lowest = Math.max(lowest, fixed ?? 0);
    this.isComplete = fixed !== undefined || lowest > 0 || !(redis instanceof Redis);
  }

  get accounts(): readonly AccountReplicas[] {
    return [...this.#accounts.values()];
  }

  of(connection: LedgerConnection): AccountReplicas {
    const key = connection.keys.ledger;
    const account = this.#accounts.get(key) ?? new AccountReplicas(connection, this.#lowest);
    this.#accounts.set(key, account);
    return account;
  }

  find(key: string): AccountReplicas | undefined {
    return this.#accounts.get(key);
  }
}

function requireNumber(fixed: number): void {
  const { error } = wholeNumberField(0, MAX_REPLICAS).safeParse(fixed);
  if (error === undefined) return;
  throw new InvalidConfigError([
    { field: 'REDIS_REPLICAS', message: `${error.issues[0]?.message ?? ''} (got ${fixed})` },
  ]);
}

/** What one account's ledger, journal and Redis say of its replicas. */
export class AccountReplicas {
  readonly connection: LedgerConnection;
  readonly #lowest: number;
  #journal: () => number = () => 0;
  #ledger = NONE;
  /** What the ledger had when this process read it first. */
  #found: number | undefined;
  #live = NONE;
  /** Seen, and not in the ledger yet. */
  #unsaved: ReplicasSeen | undefined;

  constructor(connection: LedgerConnection, lowest: number) {
    this.connection = connection;
    this.#lowest = lowest;
  }

  get key(): string {
    return this.connection.keys.ledger;
  }

  get required(): number {
    return Math.max(this.#lowest, this.known);
  }

  /** Without what this process's settings ask for. */
  get known(): number {
    return Math.max(this.#journal(), this.#ledger.count, this.#live.count, this.#unsaved?.count ?? 0);
  }

  /** Whether nobody knew a number before this process: what it sees is all that is known. */
  get isFirstContact(): boolean {
    return this.#found === 0 && this.#journal() === 0;
  }

  /** What this process has seen of them last. */
  get seen(): ReplicasSeen {
    return this.#live;
  }

  /** Where the number is from, for an operator who wants to lower it. */
  get sources(): { readonly ledger: number; readonly journal: number; readonly seen: number; readonly set: number } {
    return { ledger: this.#ledger.count, journal: this.#journal(), seen: this.#live.count, set: this.#lowest };
  }

  /** Of all that may be missing. */
  get names(): readonly string[] {
    return longerOf(this.#live.names, this.#ledger.names);
  }

  /** @param read - what the account's send journal knows */
  setJournal(read: () => number): void {
    this.#journal = read;
  }

  /** Takes what a check of the server showed. */
  see(live: ReplicasSeen): void {
    this.#live = live;
    if (live.count > Math.max(this.#ledger.count, this.#unsaved?.count ?? 0)) this.#unsaved = live;
  }

  /** Reads the ledger's number. @throws the error of ioredis */
  async read(redis: RedisClient): Promise<void> {
    const [count, names] = await redis.hmget(this.key, 'replicas', 'replicaNames');
    this.#ledger = parseStoredReplicas(count, names);
    this.#found ??= this.#ledger.count;
  }

  /** Writes to the ledger what was seen beyond it. @throws RedisUnavailableError */
  async save(): Promise<void> {
    const seen = this.#unsaved;
    if (seen === undefined) return;
    if (seen.count > this.#ledger.count) {
      await this.connection.run('raise-replicas', [seen.count, seen.names.join(' ')]);
      this.#ledger = seen;
    }
    if (this.#unsaved === seen) this.#unsaved = undefined;
  }
}

/** @param count, names - as the hash `ledger` has them */
export function parseStoredReplicas(count: string | null | undefined, names: string | null | undefined): ReplicasSeen {
  // An altered number that is none lowers nothing: journal, INFO, Sentinel and cluster still count.
  const number = /^\d{1,9}$/.test(count ?? '') ? Number(count) : 0;
  return { count: number, names: (names ?? '').split(' ').filter((name) => name !== '') };
}
