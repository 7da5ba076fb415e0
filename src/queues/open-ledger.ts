import type { Telemetry } from 'bullmq';
import { type Clock, systemClock } from '../base/clock.js';
import { InvalidConfigError, type Problem } from '../base/errors.js';
import { errorsAsWarnings, failsafeLogger, type Logger } from '../base/logger.js';
import {
  closeRedis,
  connectRedis,
  findUnfitOption,
  keyPrefixOf,
  type RedisClient,
  serverOptions,
} from '../base/redis.js';
import { requireClassNames } from '../base/redis-errors.js';
import { checkOptions, objectWith, type OptionRules, requireNone, WATCHING_RULES } from '../base/setting.js';
import { ACCOUNT_IDENTITY, WORKER_SETTINGS } from '../base/settings.js';
import { type Confirmation, WriteConfirmer } from '../ledger/confirm-write.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger, wrongStateError } from '../ledger/payout-ledger.js';
import type { Actor, Payout } from '../ledger/payout.js';
import { KnownReplicas } from '../ledger/known-replicas.js';
import { UNSENT_STATES } from '../ledger/states.js';
import type { AccountQueues } from './account-queues.js';

/** The account, and the connection to Redis. */
export interface AccountConnectionOptions {
  /** The merchant account. */
  readonly platformId: number;
  /** The ledger's Redis, in a form of `REDIS_URL`. Give either `redisUrl` or `connection`. */
  readonly redisUrl?: string;
  /**
   * A connection shared by several producers; closing them leaves it open. Use `connectRedis(url, 'commands')`: a
   * connection without a `commandTimeout` is refused, because calls could hang; one to a single address without
   * `reconnectOnError`, because after a failover it would stay with the former master.
   */
  readonly connection?: RedisClient;
  /**
   * Redis replicas that must acknowledge a change (cancel, retry, pause …) before it is reported as done, if that is
   * more than the account knows.
   * @defaultValue all that the account's ledger knows, at least one with Sentinel
   */
  readonly redisReplicas?: number | undefined;
  /** Traces payouts from enqueue to send, for example `new BullMQOtel({ tracerName: 'payouts' })` of bullmq-otel. */
  readonly telemetry?: Telemetry;
  /** @defaultValue errors alone, as warnings of the process (`process.on('warning', …)`) */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

export const CONNECTION_RULES = {
  platformId: ACCOUNT_IDENTITY.platformId,
  redisUrl: WORKER_SETTINGS.redisUrl,
  connection: objectWith('duplicate', 'disconnect'),
  redisReplicas: WORKER_SETTINGS.redisReplicas,
  telemetry: objectWith(),
  ...WATCHING_RULES,
} as const satisfies OptionRules<AccountConnectionOptions>;

/** @throws InvalidConfigError with all problems of the options of an account */
export function requireAccountOptions(rules: Parameters<typeof checkOptions>[0], options: unknown): void {
  const problems = checkOptions(rules, options);
  requireNone(problems.length > 0 ? problems : checkTarget(options as AccountConnectionOptions));
}

/** Whether the options name one Redis. */
export function checkTarget(options: { readonly redisUrl?: unknown; readonly connection?: unknown }): Problem[] {
  const { redisUrl, connection } = options;
  if (connection !== undefined && redisUrl !== undefined)
    return [{ field: 'connection', message: 'is given, but so is redisUrl: give one of them' }];
  if (connection === undefined && redisUrl === undefined)
    return [{ field: 'redisUrl', message: 'is missing (or give a connection)' }];
  return [];
}

export interface LedgerAccess {
  readonly ledger: PayoutLedger;
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Opens the queues, once. BullMQ takes as long to load as all the rest, and readers do not need it. Call it before a
   * change of the ledger: between the change and its job, only Redis may fail.
   */
  readonly openQueues: () => Promise<AccountQueues>;
  /** Never waits for an unavailable Redis. */
  close(): Promise<void>;
}

/**
 * Opens the ledger of an account. No command hangs: each fails within the connection's `commandTimeout`.
 * @param confirmation - how a change is confirmed as kept; by default, the account's known replicas acknowledge it
 * @param acceptance - the same for payouts that are accepted
 * @throws InvalidConfigError if the options cannot be used
 */
export function openLedger(
  options: AccountConnectionOptions,
  confirmation?: Confirmation,
  acceptance?: Confirmation,
): LedgerAccess {
  const { platformId, connection, telemetry, clock = systemClock } = options;
  const logger = failsafeLogger(options.logger ?? errorsAsWarnings);
  const redis = connection === undefined ? connect(options.redisUrl, logger) : checkConnection(connection);
  const confirms = confirmation ?? new WriteConfirmer({ redis, known: knowReplicas(redis, options) });
  const ledger = new PayoutLedger(connectLedger(redis, platformId, clock), confirms, acceptance);
  let opening: Promise<AccountQueues> | undefined;
  const openQueues = async (): Promise<AccountQueues> => {
    const { createAccountQueues } = await import('./account-queues.js');
    return createAccountQueues(ledger, { logger, telemetry });
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

function connect(redisUrl: string | undefined, logger: Logger): RedisClient {
  if (redisUrl === undefined) throw invalid('redisUrl', 'is missing (or give a connection)');
  try {
    return connectRedis(redisUrl, 'commands', logger);
  } catch (error) {
    throw invalid('redisUrl', (error as Error).message);
  }
}

function checkConnection(connection: RedisClient): RedisClient {
  requireFitClient(connection);
  const { commandTimeout, reconnectOnError, sentinels } = serverOptions(connection);
  const trouble =
    commandTimeout === undefined
      ? 'no commandTimeout, so a call could hang'
      : // Sentinels and clusters tell a client of a failover.
        reconnectOnError == null && !sentinels && !connection.isCluster
        ? 'no reconnectOnError, so after a failover it would stay with a server that is read-only'
        : undefined;
  if (trouble === undefined) return connection;
  throw invalid('connection', `has ${trouble}: use connectRedis(url, 'commands')`);
}

/** @throws InvalidConfigError */
export function requireFitClient(connection: RedisClient): void {
  requireClassNames();
  const prefix = keyPrefixOf(connection);
  if (prefix !== '') {
    throw invalid('connection', `must have no keyPrefix, under which no worker looks (got ${JSON.stringify(prefix)})`);
  }
  const unfit = findUnfitOption(connection);
  if (unfit === undefined) return;
  throw invalid(
    'connection',
    `must not have ${unfit}: the ledger would read other replies than Redis gives. Use connectRedis(url, 'commands')`,
  );
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

/**
 * See `PayoutProducer.cancel`.
 * @param jobsAdded - waits for jobs that are being added, because one may be the payout's
 */
export async function cancelPayout(
  { ledger, openQueues, logger }: LedgerAccess,
  payoutId: string,
  actor: Actor,
  jobsAdded: () => Promise<void> = async () => Promise.resolve(),
): Promise<Payout> {
  const { state } = await ledger.require(payoutId);
  if (!UNSENT_STATES.includes(state)) throw wrongStateError(payoutId, state, UNSENT_STATES, 'cancelled');
  const { queues } = await openQueues();
  await ledger.change({ payoutId, from: state, to: 'cancelled', ...actor });
  const payout = await ledger.require(payoutId);
  try {
    await jobsAdded();
    await queues.removeWithdrawJob(payout);
  } catch (error) {
    // A job that stays finds a payout that is not queued, and does nothing.
    logger.debug({ payoutId, reason: (error as Error).message }, 'the job of a cancelled payout stays');
  }
  return payout;
}
