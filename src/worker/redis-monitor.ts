import type { Redis } from 'ioredis';
import { type Clock, untilAborted } from '../base/clock.js';
import { InvalidConfigError, StoppedError } from '../base/errors.js';
import { WriteConfirmer } from '../ledger/confirm-write.js';
import {
  type AccountReplicas,
  describeMissing,
  type KnownReplicas,
  type MissingReplica,
  UNNAMED,
} from '../ledger/known-replicas.js';
import { checkDurability } from '../ledger/redis-durability.js';
import { findServer, listServers } from '../ledger/redis-servers.js';
import type { ReplicasSeen } from '../ledger/sender-ledger.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';

export interface RedisCheck {
  /** Why no send of the account with this key may begin now, if any reason exists. */
  hindrance(key: string): string | undefined;
  /** As {@link hindrance}, but undefined if a connection only awaits its check. */
  refusal(key: string): string | undefined;
  /** The replicas for want of which {@link refusal} is; none if it has another reason. */
  missing(key: string): readonly MissingReplica[];
  /** The replicas that acknowledged at the last check: what a journal remembers. */
  acknowledged(key: string): ReplicasSeen;
  readonly mayForget: boolean;
}

/** For a Redis that an operator accepted as it is. */
export const ACCEPTED_REDIS: RedisCheck = {
  hindrance: () => undefined,
  refusal: () => undefined,
  missing: () => [],
  acknowledged: () => ({ count: 0, names: [] }),
  mayForget: false,
};

/** The last check of a server, on its connection of that time. */
interface Verdict {
  readonly problems: readonly string[];
  /** The replicas that follow. */
  readonly following: readonly string[];
  /** This server, as its replicas name it. */
  readonly name: string;
  readonly acknowledged: number;
  /** For how many the check waited: with fewer, more may have acknowledged. */
  readonly asked: number;
}

const LOOK_MIN_MS = 1_000;
const LOOK_MAX_MS = 60_000;
const LOOK_WHILE_REFUSED_MS = 1_000;

/**
 * Watches whether the sender's Redis keeps its writes. It checks each connection, a few times more (replicas follow a
 * new master one by one), every minute, and after every unconfirmed write. No send begins between a connection and the
 * end of its check.
 */
export class RedisMonitor implements RedisCheck {
  readonly writes: WriteConfirmer;
  readonly #redis: RedisClient;
  readonly #known: KnownReplicas;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #verdicts = new WeakMap<Redis['stream'], Verdict>();
  readonly #failures = new WeakMap<Redis, string>();
  /** What an account lacks, by its key. */
  readonly #missing = new Map<string, readonly MissingReplica[]>();
  /** The accounts whose first contact was logged. */
  readonly #met = new WeakSet<AccountReplicas>();
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> | undefined;
  #said: string | undefined;

  constructor(redis: RedisClient, known: KnownReplicas, clock: Clock, logger: Logger) {
    this.#redis = redis;
    this.#known = known;
    this.#clock = clock;
    this.#logger = logger;
    this.writes = new WriteConfirmer({
      redis,
      known,
      needsDisk: true,
      onUnconfirmed: ({ stream }) => {
        // A refusal stands, with its reason, until the next check.
        const verdict = this.#verdicts.get(stream);
        if (verdict !== undefined && !this.#isRefused(verdict)) this.#verdicts.delete(stream);
        this.#look();
      },
    });
  }

  start(): void {
    this.#redis.on('ready', this.#look);
    this.#running ??= this.#run();
  }

  /** Safe to call twice, and before start. */
  async stop(): Promise<void> {
    this.#redis.off('ready', this.#look);
    this.#stop.abort();
    this.#look();
    await this.#running;
  }

  hindrance(key: string): string | undefined {
    const server = findServer(this.#redis, key);
    const verdict = server?.status === 'ready' ? this.#verdicts.get(server.stream) : undefined;
    // The account's number may have risen since.
    if (verdict !== undefined && this.#isConclusive(verdict, key)) return this.#describe(verdict, key);
    this.#look();
    const failure = server && this.#failures.get(server);
    return failure === undefined ? 'Redis has yet to be checked' : `Redis cannot be checked: ${failure}`;
  }

  refusal(key: string): string | undefined {
    const verdict = this.#verdictOf(key);
    return verdict && this.#isConclusive(verdict, key) ? this.#describe(verdict, key) : undefined;
  }

  missing(key: string): readonly MissingReplica[] {
    const verdict = this.#verdictOf(key);
    const isReason = verdict !== undefined && verdict.problems.length === 0 && this.#lacks(verdict, key);
    return isReason ? (this.#missing.get(key) ?? []) : [];
  }

  acknowledged(key: string): ReplicasSeen {
    const verdict = this.#verdictOf(key);
    if (verdict === undefined) return { count: 0, names: [] };
    return { count: verdict.acknowledged, names: [verdict.name, ...verdict.following] };
  }

  get mayForget(): boolean {
    return this.#current().some(({ problems }) => problems.length > 0);
  }

  readonly #look = (): void => {
    this.#wake.abort();
  };

  #current(): Verdict[] {
    return listServers(this.#redis).flatMap(({ stream }) => this.#verdicts.get(stream) ?? []);
  }

  async #run(): Promise<void> {
    let delayMs = LOOK_MIN_MS;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      await this.#reconcile();
      this.#report();
      await this.#clock.sleep(this.#said === undefined ? delayMs : LOOK_WHILE_REFUSED_MS, this.#wake.signal);
      delayMs = this.#wake.signal.aborted ? LOOK_MIN_MS : Math.min(delayMs * 2, LOOK_MAX_MS);
    }
  }

  async #reconcile(): Promise<void> {
    await Promise.all(
      listServers(this.#redis).map(async (server) => {
        try {
          await this.#check(server);
          this.#failures.delete(server);
        } catch (error) {
          const { message } = toRedisError(error) as Error;
          this.#failures.set(server, message);
          this.#logger.debug({ error: message }, 'cannot check Redis');
        }
      }),
    );
  }

  async #check(server: Redis): Promise<void> {
    const { problems, name, following } = await this.writes.check(server);
    const { stream } = server;
    const accounts = this.#accountsOn(server);
    const { replicas, asked } = await this.writes.askIfKept(server, accounts);
    const verdict = { problems, following, name, acknowledged: replicas, asked };
    for (const account of accounts) this.#noteMissing(account, verdict);
    this.#verdicts.set(stream, verdict);
    for (const account of accounts) this.#reportFirstContact(account);
  }

  #noteMissing(account: AccountReplicas, verdict: Verdict): void {
    const { key } = account;
    if (!this.#lacks(verdict, key)) {
      this.#missing.delete(key);
      return;
    }
    const before = new Map(this.#missing.get(key)?.map(({ name, since }) => [name, since]));
    const names = account.missingFrom(verdict);
    const sinceOf = (name: string): number => before.get(name) ?? before.get(UNNAMED) ?? this.#clock.wallNow();
    // One that has just become silent still follows by name.
    const shown = names.length === 0 ? [...before.keys(), UNNAMED].slice(0, 1) : names;
    this.#missing.set(
      key,
      shown.map((name) => ({ name, since: sinceOf(name) })),
    );
  }

  /** Once an account: a person has to see which number sends rely on, if Redis does not tell of all. */
  #reportFirstContact(account: AccountReplicas): void {
    if (this.#known.isComplete || this.#met.has(account)) return;
    this.#met.add(account);
    if (!account.isFirstContact) return;
    const { count, names } = account.seen;
    this.#logger.info(
      { platformId: account.connection.platformId, replicas: count, names },
      'first contact with this Redis: the replicas that follow it now are taken for all. If there may be more, set REDIS_REPLICAS',
    );
  }

  #accountsOn(server: Redis): readonly AccountReplicas[] {
    return this.#known.accounts.filter(({ key }) => findServer(this.#redis, key) === server);
  }

  #verdictOf(key: string): Verdict | undefined {
    const server = findServer(this.#redis, key);
    return server && this.#verdicts.get(server.stream);
  }

  #lacks({ acknowledged }: Verdict, key: string): boolean {
    return acknowledged < (this.#known.find(key)?.required ?? 0);
  }

  /** False if the check waited for fewer replicas than the account now needs, and got them. */
  #isConclusive(verdict: Verdict, key: string): boolean {
    const { problems, acknowledged, asked } = verdict;
    return problems.length > 0 || !this.#lacks(verdict, key) || acknowledged < asked;
  }

  #isRefused(verdict: Verdict): boolean {
    return verdict.problems.length > 0 || this.#known.accounts.some(({ key }) => this.#lacks(verdict, key));
  }

  #describe(verdict: Verdict, key: string): string | undefined {
    const { problems, acknowledged } = verdict;
    if (problems.length > 0) return `This Redis may forget what was sent: ${problems.join('; ')}`;
    const account = this.#known.find(key);
    if (account === undefined || acknowledged >= account.required) return undefined;
    return describeMissing(account, acknowledged, this.#missing.get(key) ?? []);
  }

  /** Logs once at each begin, change and end. */
  #report(): void {
    const servers = listServers(this.#redis);
    const verdicts = servers.flatMap((server) => {
      const verdict = this.#verdicts.get(server.stream);
      return verdict === undefined ? [] : [{ verdict, accounts: this.#accountsOn(server) }];
    });
    const reasons = new Set(
      verdicts.flatMap(({ verdict, accounts }) =>
        ['', ...accounts.map(({ key }) => key)].flatMap((key) => this.#describe(verdict, key) ?? []),
      ),
    );
    const reason = reasons.size === 0 ? undefined : [...reasons].join('; ');
    const allChecked = verdicts.length === servers.length;
    if (reason === this.#said || (reason === undefined && !allChecked)) return;
    this.#said = reason;
    if (reason === undefined) this.#logger.info({}, 'Redis keeps its writes again; sends may begin');
    else this.#logger.error({ reason }, 'nothing is sent, because Redis may lose it');
  }
}

const DURABILITY_RETRY_MS = 1_000;

/**
 * Waits for an unavailable Redis; refuses one that may lose writes.
 * @throws InvalidConfigError if it may lose writes and the settings do not allow that
 * @throws StoppedError if the signal ended the wait
 */
export async function requireDurableRedis(
  redis: RedisClient,
  { allowVolatileRedis, logger, clock }: { allowVolatileRedis: boolean; logger: Logger; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const aborted = untilAborted(signal);
  for (;;) {
    try {
      const report = await Promise.race([checkDurability(redis), aborted]);
      if (report === undefined) throw new StoppedError('The worker was stopped while it waited for Redis.');
      const { problems, warnings } = report;
      for (const warning of warnings) logger.warn({}, `Redis: ${warning}`);
      if (problems.length === 0) return;
      if (!allowVolatileRedis) {
        throw new InvalidConfigError(
          problems.map((message) => ({
            field: 'REDIS_URL',
            message: `this Redis may forget what was sent: ${message}`,
          })),
        );
      }
      logger.warn({ problems }, 'ALLOW_VOLATILE_REDIS: this Redis may forget what was sent');
      return;
    } catch (error) {
      if (error instanceof InvalidConfigError || error instanceof StoppedError) throw error;
      logger.warn({ error: (toRedisError(error) as Error).message }, 'waiting for Redis');
      await clock.sleep(DURABILITY_RETRY_MS, signal);
    }
  }
}
