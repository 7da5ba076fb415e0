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
import { failsafeTelemetry } from './failsafe-telemetry.js';
import { OutboxRelay } from './outbox-relay.js';
import { PayoutQueues } from './payout-queues.js';
import { closeRedis, connectRedis, type RedisClient } from '../redis.js';

export interface PayoutProducerOptions {
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

/** What a process of this package decides besides: how it uses the account. */
export interface OpenAccountOptions extends PayoutProducerOptions {
  /**
   * How changes are known to be kept.
   * @defaultValue the replicas acknowledge them, as `redisReplicas` says
   */
  readonly confirmation?: Confirmation;
  /** Opens the queues without writing their settings into Redis. @defaultValue false */
  readonly readOnly?: boolean;
  /** Before the first status poll of a payout, in ms. @defaultValue 0 */
  readonly firstPollAfterMs?: number;
}

/** The account's ledger and queues, on one connection. */
export interface AccountAccess {
  readonly ledger: PayoutLedger;
  readonly queues: PayoutQueues;
  readonly relay: OutboxRelay;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends what was opened for it; never waits for a Redis that is unavailable. */
  close(): Promise<void>;
}

/**
 * Opens an account: the one way to do it, for producer, operator, dashboard, doctor and worker. No command on its connection
 * hangs: each fails within the connection's `commandTimeout`.
 * @throws InvalidConfigError when the options cannot be used
 */
export function openAccount(options: OpenAccountOptions): AccountAccess {
  const { platformId, connection, telemetry, readOnly = false, firstPollAfterMs = 0, clock = systemClock } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  checkPlatformId(platformId);
  const redis = connection === undefined ? connect(options.redisUrl, logger) : checkConnection(connection);
  const confirmation = options.confirmation ?? new WriteConfirmer({ redis, known: knowReplicas(redis, options) });
  const ledger = new PayoutLedger(connectLedger(redis, platformId, clock), confirmation);
  const queues = new PayoutQueues(redis, {
    prefix: ledger.connection.keys.prefix,
    wallNow: () => clock.wallNow(),
    logger,
    readOnly,
    ...(telemetry === undefined ? {} : { telemetry: failsafeTelemetry(telemetry) }),
  });
  const relay = new OutboxRelay({ ledger, queues, firstPollAfterMs, clock, logger });
  const close = async (): Promise<void> => {
    await queues.close();
    if (connection === undefined) await closeRedis(redis);
  };
  return { ledger, queues, relay, clock, logger, close };
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

function knowReplicas(redis: RedisClient, { redisReplicas, connection }: PayoutProducerOptions): KnownReplicas {
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
