import type { Telemetry } from 'bullmq';
import { accountSettingsSchema, completeSettings, type PartialAccountSettings } from '../account-settings.js';
import { systemClock, type Clock } from '../clock.js';
import { InvalidConfigError, type Problem } from '../errors.js';
import { toProblem } from '../fields.js';
import { createGatewayClient } from '../gateway/gateway-client.js';
import type { Durability } from '../ledger/redis-sender-ledger.js';
import { silentLogger, type Logger } from '../logger.js';
import { closeRedis, connectRedis, toRedisError, type RedisClient } from '../redis.js';
import { AccountWorker, type WorkerConnections } from './account-worker.js';
import { FileSendJournal } from './file-send-journal.js';
import { checkDurability } from './redis-durability.js';
import { noObserver, type WorkerObserver } from './worker-observer.js';

/** One merchant account to work for. */
export interface AccountOptions extends PartialAccountSettings {
  readonly platformId: number;
  /** https, or http on loopback only. */
  readonly baseUrl: string;
  /** Signs the requests; never logged, never in Redis. */
  readonly secretKey: string;
}

export interface PayoutWorkerOptions {
  /** @defaultValue redis://127.0.0.1:6379 */
  readonly redisUrl?: string;
  readonly accounts: readonly AccountOptions[];
  /** The folder of the send journals, on a disk that outlives the process. */
  readonly journalDir: string;
  /** Sends even on a Redis that may forget what was sent. Never with real money. @defaultValue false */
  readonly allowVolatileRedis?: boolean;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Measures each account's work. */
  readonly observe?: (platformId: number) => WorkerObserver;
  /** Passed on to BullMQ, for example `bullmq-otel`'s. */
  readonly telemetry?: Telemetry;
}

const DURABILITY_RETRY_MS = 1_000;

/** Sends and follows the payouts of one account or several, each on its own, in one process. */
export class PayoutWorker {
  readonly accounts: readonly AccountWorker[];
  readonly connections: WorkerConnections;
  #stopping: Promise<void> | undefined;

  private constructor(connections: WorkerConnections, accounts: readonly AccountWorker[]) {
    this.connections = connections;
    this.accounts = accounts;
  }

  /**
   * Checks Redis and opens the journals; waits for a Redis that is away.
   * @param signal - ends the waiting
   * @throws InvalidConfigError when a setting breaks its rule, or Redis may forget what was sent
   * @throws Error when a journal cannot be opened
   */
  static async create(options: PayoutWorkerOptions, signal: AbortSignal): Promise<PayoutWorker> {
    checkSettings(options.accounts);
    const { redisUrl = 'redis://127.0.0.1:6379', logger = silentLogger, clock = systemClock } = options;
    const connections: WorkerConnections = {
      commands: connectRedis(redisUrl, 'commands', logger),
      sender: connectRedis(redisUrl, 'sender', logger),
      queue: connectRedis(redisUrl, 'queue', logger),
    };
    try {
      const durability = await requireDurableRedis(connections.commands, options, signal);
      const accounts = await Promise.all(
        options.accounts.map(async (account) =>
          openAccount(account, { options, connections, durability, logger, clock }),
        ),
      );
      return new PayoutWorker(connections, accounts);
    } catch (error) {
      await closeAll(connections);
      throw error;
    }
  }

  start(): void {
    for (const account of this.accounts) account.start();
  }

  /** Ends every account in good order: no new send, the answers under way are waited for, the leases given back. */
  async stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    await Promise.all(this.accounts.map(async (account) => account.stop()));
    await closeAll(this.connections);
  }
}

/**
 * Starts a worker inside an application.
 * @example
 * const worker = await createPayoutWorker({ accounts: [{ platformId, baseUrl, secretKey }], journalDir: './data/journal' });
 * process.once('SIGTERM', () => void worker.stop());
 * @throws InvalidConfigError when a setting breaks its rule, or Redis may forget what was sent
 * @throws Error when a journal cannot be opened
 */
export async function createPayoutWorker(
  options: PayoutWorkerOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<PayoutWorker> {
  const worker = await PayoutWorker.create(options, signal);
  worker.start();
  return worker;
}

function checkSettings(accounts: readonly AccountOptions[]): void {
  const problems = accounts.flatMap(({ platformId, ...account }) => {
    const { error } = accountSettingsSchema.safeParse(completeSettings(account), { reportInput: true });
    return (error?.issues ?? [])
      .map(toProblem)
      .map(({ field, message }): Problem => ({ field: `${field} of account ${platformId}`, message }));
  });
  if (accounts.length === 0) problems.push({ field: 'accounts', message: 'must name at least one account' });
  if (problems.length > 0) throw new InvalidConfigError(problems);
}

/** A Redis that is away at the start is waited for; one that may forget is refused. */
async function requireDurableRedis(
  redis: RedisClient,
  { allowVolatileRedis = false, logger = silentLogger, clock = systemClock }: PayoutWorkerOptions,
  signal: AbortSignal,
): Promise<Durability> {
  for (;;) {
    try {
      const { durability, problems, warnings } = await checkDurability(redis);
      for (const warning of warnings) logger.warn({}, `Redis: ${warning}`);
      if (problems.length === 0) return durability;
      if (!allowVolatileRedis) {
        throw new InvalidConfigError(
          problems.map((message) => ({
            field: 'REDIS_URL',
            message: `this Redis may forget what was sent: ${message}`,
          })),
        );
      }
      logger.warn({ problems }, 'ALLOW_VOLATILE_REDIS: this Redis may forget what was sent');
      return 'reply';
    } catch (error) {
      if (error instanceof InvalidConfigError || signal.aborted) throw error;
      logger.warn({ error: (toRedisError(error) as Error).message }, 'waiting for Redis');
      await clock.sleep(DURABILITY_RETRY_MS, signal);
    }
  }
}

interface OpenAccountContext {
  readonly options: PayoutWorkerOptions;
  readonly connections: WorkerConnections;
  readonly durability: Durability;
  readonly logger: Logger;
  readonly clock: Clock;
}

async function openAccount(account: AccountOptions, context: OpenAccountContext): Promise<AccountWorker> {
  const { options, connections, durability, clock } = context;
  const { platformId, baseUrl, secretKey, ...given } = account;
  const settings = completeSettings(given);
  const logger = context.logger.child({ platformId });
  const observer = options.observe?.(platformId) ?? noObserver;
  const journal = await FileSendJournal.open({
    dir: options.journalDir,
    platformId,
    onSynced: (durationMs) => {
      observer.journalSynced(durationMs);
    },
  });
  const gateway = createGatewayClient({
    baseUrl,
    platformId,
    secretKey,
    logger,
    clock,
    timeoutMs: settings.timeoutMs,
    withdrawTimeoutMs: settings.withdrawTimeoutMs,
  });
  return new AccountWorker({
    platformId,
    settings,
    connections,
    durability,
    gateway,
    journal,
    clock,
    observer,
    logger,
    ...(options.telemetry === undefined ? {} : { telemetry: options.telemetry }),
  });
}

async function closeAll({ commands, sender, queue }: WorkerConnections): Promise<void> {
  await Promise.all([closeRedis(commands), closeRedis(sender), closeRedis(queue)]);
}
