import type { Telemetry } from 'bullmq';
import { Cluster } from 'ioredis';
import { systemClock, type Clock } from '../clock.js';
import { InvalidConfigError } from '../errors.js';
import { platformIdField, toProblem } from '../fields.js';
import { WriteConfirmer, type Confirmation } from '../ledger/confirm-write.js';
import { KnownReplicas } from '../ledger/known-replicas.js';
import { failsafeLogger, silentLogger, type Logger } from '../logger.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { closeRedis, connectRedis, type RedisClient } from '../redis.js';
import type { AccountQueues } from './account-queues.js';

/** Which account it is, and how Redis is reached. */
export interface AccountConnectionOptions {
  /** The merchant account. */
  readonly platformId: number;
  /** Where the ledger is, in one of the forms of `REDIS_URL`. One of `redisUrl` and `connection`. */
  readonly redisUrl?: string;
  /**
   * A connection that several producers share; it stays open when they are closed. Open it with
   * `connectRedis(url, 'commands')`: one without a `commandTimeout` would let calls hang and is refused.
   */
  readonly connection?: RedisClient;
  /**
   * How many replicas of Redis must acknowledge a change (cancel, retry, pause …) before it is reported as done: the same
   * as the worker's.
   * @defaultValue all that are connected, at least one with Sentinel
   */
  readonly redisReplicas?: number | undefined;
  /** Traces payouts from enqueue to send, for example `new BullMQOtel({ tracerName: 'payouts' })` of bullmq-otel. */
  readonly telemetry?: Telemetry;
  /** @defaultValue a logger that says nothing */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

/** How changes are known to be kept, besides. */
export interface OpenLedgerOptions extends AccountConnectionOptions {
  /** @defaultValue the replicas acknowledge them, as `redisReplicas` says */
  readonly confirmation?: Confirmation;
}

/** The account's ledger, and its queues for those who change jobs. */
export interface LedgerAccess {
  readonly ledger: PayoutLedger;
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Opens the queues, once. BullMQ takes as long to load as all the rest, and who only reads needs none of it. To be called
   * before the ledger is changed: nothing may fail between the change and its job but Redis.
   */
  readonly openQueues: () => Promise<AccountQueues>;
  /** Ends what was opened for it; never waits for a Redis that is unavailable. */
  close(): Promise<void>;
}

/**
 * Opens the ledger of an account. No command on its connection hangs: each fails within the connection's `commandTimeout`.
 * @throws InvalidConfigError when the options cannot be used
 */
export function openLedger(options: OpenLedgerOptions): LedgerAccess {
  const { platformId, connection, telemetry, clock = systemClock } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  checkPlatformId(platformId);
  const redis = connection === undefined ? connect(options.redisUrl, logger) : checkConnection(connection);
  const confirmation = options.confirmation ?? new WriteConfirmer({ redis, known: knowReplicas(redis, options) });
  const ledger = new PayoutLedger(connectLedger(redis, platformId, clock), confirmation);
  let opening: Promise<AccountQueues> | undefined;
  const openQueues = async (): Promise<AccountQueues> => {
    const { createAccountQueues } = await import('./account-queues.js');
    return createAccountQueues({ ledger, clock, logger, telemetry });
  };
  return {
    ledger,
    clock,
    logger,
    openQueues: async () => (opening ??= openQueues()),
    close: async () => {
      await (await opening?.catch(() => undefined))?.queues.close();
      if (connection === undefined) await closeRedis(redis);
    },
  };
}

function checkPlatformId(platformId: number): void {
  const parsed = platformIdField.safeParse(platformId, { reportInput: true });
  if (parsed.success) return;
  throw new InvalidConfigError(parsed.error.issues.map((issue) => ({ ...toProblem(issue), field: 'platformId' })));
}

function connect(redisUrl: string | undefined, logger: Logger): RedisClient {
  if (redisUrl === undefined) throw invalid('redisUrl', 'is missing (or give a connection)');
  try {
    return connectRedis(redisUrl, 'commands', logger);
  } catch (error) {
    throw invalid('redisUrl', (error as Error).message);
  }
}

function checkConnection(connection: RedisClient): RedisClient {
  const options = connection instanceof Cluster ? connection.options.redisOptions : connection.options;
  if (options?.commandTimeout !== undefined) return connection;
  throw invalid('connection', "has no commandTimeout, so a call could hang: use connectRedis(url, 'commands')");
}

function knowReplicas(redis: RedisClient, { redisReplicas, connection }: AccountConnectionOptions): KnownReplicas {
  try {
    return new KnownReplicas(redis, redisReplicas);
  } catch (error) {
    if (connection === undefined) void closeRedis(redis);
    throw error;
  }
}

function invalid(field: string, message: string): InvalidConfigError {
  return new InvalidConfigError([{ field, message }]);
}
