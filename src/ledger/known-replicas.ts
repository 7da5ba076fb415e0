import { Redis } from 'ioredis';
import { InvalidConfigError } from '../base/errors.js';
import { wholeNumberField } from '../base/fields.js';
import type { RedisClient } from '../base/redis.js';
import { formatTimeUtc, toIsoTime } from '../base/format.js';
import type { LedgerConnection } from './ledger-connection.js';
import { isWatchedBySentinels } from './redis-servers.js';
import { type ServerReport } from './redis-durability.js';
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

  /** Of the servers known by name, those that neither lead nor follow. */
  missingFrom({ name, following }: Pick<ServerReport, 'name' | 'following'>): readonly string[] {
    const { names } = this.#live.count >= this.#ledger.count ? this.#live : this.#ledger;
    return names.filter((each) => each !== name && !following.includes(each));
  }

  /** @param read - what the account's send journal knows */
  setJournal(read: () => number): void {
    this.#journal = read;
  }

  /** Takes what a check of the server showed. */
  see(live: ReplicasSeen): void {
    this.#live = live;
    if (live.count >= Math.max(this.#ledger.count, this.#unsaved?.count ?? 1)) this.#unsaved = live;
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
    const write = async (): Promise<void> => {
      await this.connection.run('raise-replicas', { count: seen.count, names: seen.names.join(' ') });
      this.#ledger = seen;
    };
    if (seen.count > this.#ledger.count) await write();
    else if (seen.count === this.#ledger.count && !hasSameNames(seen, this.#ledger)) {
      // One was replaced by another. The number stays, and nothing depends on names: they may wait for the next check.
      await write().catch(() => undefined);
    }
    if (this.#unsaved === seen) this.#unsaved = undefined;
  }
}

/** A replica that is missed, and not known by name. */
export const UNNAMED = 'unknown';

export interface MissingReplica {
  /** Its address, or {@link UNNAMED}. */
  readonly name: string;
  /** Wall clock, ms: the check that first missed it. */
  readonly since: number;
}

/** What an operator needs to know of missing replicas: which, since when, and the command that gives one up. */
export function describeMissing(
  account: AccountReplicas,
  acknowledged: number,
  missing: readonly MissingReplica[],
): string {
  const each = missing.map(
    ({ name, since }) =>
      `; ${name === UNNAMED ? 'one' : name} is missing, since ${formatTimeUtc(toIsoTime(since))} at the latest`,
  );
  return (
    `Only ${acknowledged} of ${account.required} replicas of Redis acknowledge writes, so a failover could forget what ` +
    `was sent${each.join('')}. ${adviseMissing(account, acknowledged)}`
  );
}

/** @param acknowledged - how many replicas do */
export function adviseMissing(
  { required, known, connection: { platformId } }: AccountReplicas,
  acknowledged: number,
): string {
  if (known <= acknowledged)
    return `REDIS_REPLICAS asks for ${required} here: correct it, or bring the missing ones back.`;
  const command = `payouts redis-replicas ${known - 1} --account ${platformId} --reason WHY`;
  return `Bring the missing ones back. If one is gone for good: \`${command}\` (docs/runbooks/replicas-missing.md).`;
}

function hasSameNames(one: ReplicasSeen, other: ReplicasSeen): boolean {
  return one.names.join(' ') === other.names.join(' ');
}

/** An address; anyone who writes to Redis could store anything else. */
const NAME = /^[\w.:[\]-]{1,255}$/;

/** @param count, names - as the hash `ledger` has them */
export function parseStoredReplicas(count: string | null | undefined, names: string | null | undefined): ReplicasSeen {
  // An altered number that is none lowers nothing: journal, INFO, Sentinel and cluster still count.
  const number = /^\d{1,9}$/.test(count ?? '') ? Number(count) : 0;
  const addresses = (names ?? '').split(' ').filter((name) => NAME.test(name));
  return { count: number, names: addresses.slice(0, MAX_REPLICAS + 1) };
}
