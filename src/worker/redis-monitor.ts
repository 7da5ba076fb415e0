import type { Redis } from 'ioredis';
import { type Clock, untilAborted } from '../base/clock.js';
import { InvalidConfigError, StoppedError } from '../base/errors.js';
import { WriteConfirmer } from '../ledger/confirm-write.js';
import { checkDurability, findServer, type KnownReplicas, listServers } from '../ledger/redis-durability.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';

export interface RedisCheck {
  /** Why no send of the account with this key may begin now, if any reason exists. */
  hindrance(key: string): string | undefined;
  /** As {@link hindrance}, but undefined if a connection only awaits its check. */
  refusal(key: string): string | undefined;
  readonly mayForget: boolean;
  readonly missingReplicas: number;
}

/** For a Redis that an operator accepted as it is. */
export const ACCEPTED_REDIS: RedisCheck = {
  hindrance: () => undefined,
  refusal: () => undefined,
  mayForget: false,
  missingReplicas: 0,
};

/** The last check of a server, on its connection of that time. */
interface Verdict {
  readonly problems: readonly string[];
  readonly missingReplicas: number;
  readonly requiredReplicas: number;
}

const LOOK_MIN_MS = 1_000;
const LOOK_MAX_MS = 60_000;
const LOOK_WHILE_REFUSED_MS = 2_000;

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
      onDoubt: ({ stream }) => {
        // A refusal stands, with its reason, until the next check.
        const verdict = this.#verdicts.get(stream);
        if (verdict !== undefined && describe(verdict) === undefined) this.#verdicts.delete(stream);
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
    if (verdict !== undefined) return describe(verdict);
    this.#look();
    const failure = server && this.#failures.get(server);
    return failure === undefined ? 'Redis has yet to be checked' : `Redis cannot be checked: ${failure}`;
  }

  refusal(key: string): string | undefined {
    const server = findServer(this.#redis, key);
    const verdict = server && this.#verdicts.get(server.stream);
    return verdict && describe(verdict);
  }

  get mayForget(): boolean {
    return this.#current().some(({ problems }) => problems.length > 0);
  }

  get missingReplicas(): number {
    return Math.max(0, ...this.#current().map(({ missingReplicas }) => missingReplicas));
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
    const report = await this.writes.check(server);
    const { stream } = server;
    const requiredReplicas = this.#known.required(report.replication);
    const { replicas } = requiredReplicas === 0 ? { replicas: 0 } : await this.writes.askIfKept(server);
    const missingReplicas = Math.max(0, requiredReplicas - replicas);
    this.#verdicts.set(stream, { problems: report.problems, missingReplicas, requiredReplicas });
  }

  /** Logs once at each begin, change and end. */
  #report(): void {
    const verdicts = this.#current();
    const reasons = new Set(verdicts.flatMap((verdict) => describe(verdict) ?? []));
    const reason = reasons.size === 0 ? undefined : [...reasons].join('; ');
    const allChecked = verdicts.length === listServers(this.#redis).length;
    if (reason === this.#said || (reason === undefined && !allChecked)) return;
    this.#said = reason;
    if (reason === undefined) this.#logger.info({}, 'Redis keeps its writes again; sends may begin');
    else this.#logger.error({ reason }, 'nothing is sent, because Redis may lose it');
  }
}

function describe({ problems, missingReplicas, requiredReplicas }: Verdict): string | undefined {
  if (problems.length > 0) return `This Redis may forget what was sent: ${problems.join('; ')}`;
  if (missingReplicas === 0) return undefined;
  return (
    `Only ${requiredReplicas - missingReplicas} of ${requiredReplicas} replicas of Redis acknowledge writes, so a ` +
    'failover could forget what was sent: bring the missing ones back. If one is gone for good, see "Replicas" in docs/redis.md'
  );
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
