import { resolve } from 'node:path';
import type { Telemetry } from 'bullmq';
import {
  type ACCOUNT_IDENTITY,
  ACCOUNT_SETTINGS,
  audienceOf,
  completeSettings,
  type PartialAccountSettings,
  WORKER_SETTINGS,
} from '../base/settings.js';
import { PayoutArchive } from '../archive/payout-archive.js';
import { checkSettings, type PartialSettings, type Settings } from '../base/setting.js';
import { systemClock, type Clock } from '../base/clock.js';
import { InvalidConfigError, type Problem } from '../base/errors.js';
import { createGatewayClient } from '../gateway/gateway-client.js';
import { FileSendJournal } from '../journal/file-send-journal.js';
import { WriteConfirmer } from '../ledger/confirm-write.js';
import { KnownReplicas } from '../ledger/redis-durability.js';
import { failsafeLogger, silentLogger, type Logger } from '../base/logger.js';
import { failsafeTelemetry } from '../queues/account-queues.js';
import { closeRedis, connectRedis } from '../base/redis.js';
import type { OpenControl, WorkerControl } from './account-control.js';
import { AccountWorker } from './account-worker.js';
import type { WorkerConfirmations, WorkerConnections } from './account-worker-options.js';
import { RecentWork } from './monitoring/recent-work.js';
import { RedisClocks } from './redis-clocks.js';
import { ACCEPTED_REDIS, type RedisCheck, RedisMonitor, requireDurableRedis } from './redis-monitor.js';
import type { AccountSharing } from './sharing/account-sharing.js';
import { isShared, openSharing } from './sharing/open-sharing.js';
import { openObserver, type WorkerObserver } from './sender/worker-observer.js';

/** One merchant account to work for. */
export interface AccountOptions extends PartialAccountSettings, Settings<typeof ACCOUNT_IDENTITY> {}

/** The accounts of a worker and their shared options. */
export interface PayoutWorkerOptions extends PartialSettings<typeof WORKER_SETTINGS> {
  /** The folder of the send journals, on a disk that outlives the process. */
  readonly journalDir: string;
  readonly accounts: readonly AccountOptions[];
  /**
   * Errors of the logger, the observers and the telemetry are counted and change nothing. @defaultValue a silent logger
   */
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Measures each account's work. */
  readonly observe?: (platformId: number) => WorkerObserver;
  /** Passed to BullMQ, for example from `bullmq-otel`. */
  readonly telemetry?: Telemetry;
}

/** Sends and follows the payouts of accounts. The public class of this name adds control of money. */
export class PayoutWorker {
  readonly accounts: readonly AccountWorker[];
  readonly #connections: WorkerConnections;
  readonly #watch: RedisMonitor | undefined;
  readonly #redisClocks: RedisClocks;
  readonly #control: WorkerControl | undefined;
  /** Undefined with one account: all its processes stand by for it. */
  readonly #sharing: AccountSharing | undefined;
  #stopping: Promise<void> | undefined;

  protected constructor(
    connections: WorkerConnections,
    accounts: readonly AccountWorker[],
    watch: RedisMonitor | undefined,
    redisClocks: RedisClocks,
    control: WorkerControl | undefined,
    sharing: AccountSharing | undefined,
  ) {
    this.#connections = connections;
    this.accounts = accounts;
    this.#watch = watch;
    this.#redisClocks = redisClocks;
    this.#control = control;
    this.#sharing = sharing;
  }

  /** @throws as the public class and `openControl` */
  static async create(
    options: PayoutWorkerOptions,
    signal: AbortSignal,
    openControl?: OpenControl,
  ): Promise<PayoutWorker> {
    requireValid(options);
    const { redisUrl = WORKER_SETTINGS.redisUrl.default, clock = systemClock } = options;
    const { allowVolatileRedis = WORKER_SETTINGS.allowVolatileRedis.default } = options;
    const logger = failsafeLogger(options.logger ?? silentLogger);
    const control = openControl?.({ logger, clock });
    const connections: WorkerConnections = {
      commands: connectRedis(redisUrl, 'commands', logger),
      sender: connectRedis(redisUrl, 'sender', logger),
      queue: connectRedis(redisUrl, 'queue', logger),
    };
    try {
      const known = new KnownReplicas(connections.sender, options.redisReplicas);
      await requireDurableRedis(connections.commands, { allowVolatileRedis, logger, clock }, signal);
      const watch = allowVolatileRedis ? undefined : new RedisMonitor(connections.sender, known, clock, logger);
      const confirmations: WorkerConfirmations = watch
        ? { sender: watch.writes, commands: new WriteConfirmer({ redis: connections.commands, known }) }
        : { sender: 'reply', commands: 'reply' };
      const judgement = watch ?? ACCEPTED_REDIS;
      const redisClocks = new RedisClocks(connections.commands, clock, logger);
      const accounts = options.accounts.map((account) =>
        openAccount(account, {
          options,
          control,
          connections,
          confirmations,
          judgement,
          redisClocks,
          logger,
          clock,
        }),
      );
      watch?.start();
      redisClocks.start();
      const sharing = openSharing(accounts, connections.commands, options.journalDir, { clock, logger });
      return new this(connections, accounts, watch, redisClocks, control, sharing);
    } catch (error) {
      await closeAll(connections);
      throw error;
    }
  }

  start(): void {
    for (const account of this.accounts) account.start();
    this.#sharing?.start();
  }

  /**
   * Reads the keyring file again, if there is one. An unusable file is logged as an error and shown at /readyz; the
   * former keyring stays in force.
   */
  reloadKeys(): void {
    this.#control?.reloadKeys();
  }

  /**
   * Reads the policies again; call `reloadKeys` first, because they are compared with the keyring. An unusable file is
   * logged as an error and shown at /readyz; the former policy stays in force.
   */
  reloadPolicies(): void {
    this.#control?.reloadPolicies();
  }

  /** Ends every account: starts no new send, awaits responses in progress, releases the leases. */
  async stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    // Publish the end first, so that others stand by while sends in progress get their responses.
    await Promise.all([this.#sharing?.stop(), ...this.accounts.map(async (account) => account.stop())]);
    await this.#watch?.stop();
    await this.#redisClocks.stop();
    await closeAll(this.#connections);
  }
}

function requireValid(options: PayoutWorkerOptions): void {
  const { accounts } = options;
  const problems = accounts.flatMap(({ platformId, ...account }, index) => {
    // Two workers of one account would each write its journal and take the lease from each other.
    if (accounts.findIndex((other) => other.platformId === platformId) < index) {
      return [{ field: 'accounts', message: `must name each platformId once (${platformId} is there twice)` }];
    }
    return checkSettings(ACCOUNT_SETTINGS, completeSettings(account)).map(({ field, message }): Problem => ({
      field: `${field} of account ${platformId}`,
      message,
    }));
  });
  problems.push(...checkSettings(WORKER_SETTINGS, options));
  if (accounts.length === 0) problems.push({ field: 'accounts', message: 'must name at least one account' });
  if (problems.length > 0) throw new InvalidConfigError(problems);
}

interface OpenAccountContext {
  readonly options: PayoutWorkerOptions;
  readonly control: WorkerControl | undefined;
  readonly connections: WorkerConnections;
  readonly confirmations: WorkerConfirmations;
  readonly judgement: RedisCheck;
  readonly redisClocks: RedisClocks;
  readonly logger: Logger;
  readonly clock: Clock;
}

function openAccount(account: AccountOptions, context: OpenAccountContext): AccountWorker {
  const { options, connections, confirmations, judgement, redisClocks, clock } = context;
  const { journalDays = WORKER_SETTINGS.journalDays.default, archiveDir } = options;
  const { platformId, baseUrl, secretKey, ...given } = account;
  const settings = completeSettings(given);
  const audience = audienceOf(account);
  const logger = context.logger.child({ platformId });
  const control = context.control?.of({ platformId, audience, logger });
  const work = new RecentWork(clock, openObserver(platformId, options.observe));
  const openJournal = async (): Promise<FileSendJournal> =>
    FileSendJournal.open({
      dir: options.journalDir,
      platformId,
      keepDays: journalDays,
      holdsUnsigned: control?.heldLines.unsigned === true,
      holdsSpends: control?.heldLines.spends === true,
      onSynced: (durationMs) => {
        work.observer.journalSynced(durationMs);
      },
      onTrouble: (error) => {
        logger.warn({ error: error.message }, 'the outcome of a send could not be journaled');
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
    part: isShared(options.accounts) ? 'rest' : 'send',
    audience,
    control,
    connections,
    confirmations,
    judgement,
    redisClocks,
    gateway,
    openJournal,
    journalDir: resolve(options.journalDir),
    journalDays,
    archive: archiveDir === undefined ? undefined : new PayoutArchive({ dir: archiveDir, platformId }),
    clock,
    work,
    logger,
    ...(options.telemetry === undefined ? {} : { telemetry: failsafeTelemetry(options.telemetry) }),
  });
}

async function closeAll({ commands, sender, queue }: WorkerConnections): Promise<void> {
  await Promise.all([closeRedis(commands), closeRedis(sender), closeRedis(queue)]);
}
