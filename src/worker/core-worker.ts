import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { Telemetry } from 'bullmq';
import { audienceOf, bindingOf } from '../base/audience.js';
import {
  ACCOUNT_IDENTITY,
  ACCOUNT_SETTINGS,
  completeSettings,
  GUARD_MS,
  type PartialAccountSettings,
  WORKER_SETTINGS,
} from '../base/settings.js';
import { PayoutArchive } from '../archive/payout-archive.js';
import {
  checkOptions,
  functionRule,
  objectWith,
  type OptionRule,
  type OptionRules,
  type PartialSettings,
  requireNone,
  WATCHING_RULES,
} from '../base/setting.js';
import { type Clock, DAY_MS, machineUptime, systemClock } from '../base/clock.js';
import { InvalidConfigError, type Problem } from '../base/errors.js';
import { endProcess } from '../base/invariants.js';
import { type GatewayAccess, openGateway, ownGatewayRule } from '../gateway/open-gateway.js';
import { FileSendJournal } from '../journal/file-send-journal.js';
import { type Confirmation, WriteConfirmer } from '../ledger/confirm-write.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { KnownReplicas } from '../ledger/known-replicas.js';
import { failsafeLogger, silentLogger, type Logger } from '../base/logger.js';
import { loadTracing, tracedLogger } from '../base/tracing.js';
import { TracedSenderLedger, traceMeasurements } from './trace-work.js';
import { failsafeTelemetry } from '../queues/account-queues.js';
import { openAccount } from '../queues/open-account.js';
import { closeRedis, connectLike, connectRedis, findUnlike, type RedisClient, type RedisRole } from '../base/redis.js';
import { checkTarget, requireFitClient } from '../queues/open-ledger.js';
import type { OpenControl, WorkerControl } from './account-control.js';
import { AccountWorker } from './account-worker.js';
import type { OpeningRuntime } from './account-runtime.js';
import { observeGateway } from './monitoring/observe-gateway.js';
import { RecentWork } from './monitoring/recent-work.js';
import { RedisClocks } from './redis-clocks.js';
import { ACCEPTED_REDIS, type RedisCheck, RedisMonitor, requireDurableRedis } from './redis-monitor.js';
import type { AccountSharing } from './sharing/account-sharing.js';
import { isShared, openSharing } from './sharing/open-sharing.js';
import { keptIntervalMs, Pacer } from './sender/pacer.js';
import { openObserver, type WorkerObserver } from './sender/worker-observer.js';

/**
 * One merchant account to work for; docs/configuration.md has the rules and defaults. `gateway` is a gateway of your own
 * (docs/own-gateway.md), in place of `baseUrl` and `secretKey`.
 */
export type AccountOptions = PartialAccountSettings & { readonly platformId: number } & GatewayAccess;

/** The accounts of a worker and their shared options. */
export interface CoreWorkerOptions extends PartialSettings<typeof WORKER_SETTINGS> {
  /** The folder of the send journals, on a disk that outlives the process. */
  readonly journalDir: string;
  readonly accounts: readonly AccountOptions[];
  /**
   * A connection of yours, in place of `redisUrl`. The worker opens its own connections to the same Redis: address,
   * database, login, TLS, Sentinels and cluster are taken from it, time limits and retries are not. It is neither used
   * nor closed.
   */
  readonly connection?: RedisClient | undefined;
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

interface WorkerConnections {
  readonly commands: RedisClient;
  readonly sender: RedisClient;
  readonly queue: RedisClient;
}

interface WorkerConfirmations {
  readonly commands: Confirmation;
  readonly sender: Confirmation;
}

/** 48 bits: tokens must differ among the attempts of one payout. */
const TOKEN_BYTES = 6;

/** Sends and follows the payouts of accounts. The public class of this name adds control of money. */
export class CoreWorker {
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
  static async create(options: CoreWorkerOptions, signal: AbortSignal, openControl?: OpenControl): Promise<CoreWorker> {
    const { redisUrl = WORKER_SETTINGS.redisUrl.default, clock = systemClock } = options;
    const { allowVolatileRedis = WORKER_SETTINGS.allowVolatileRedis.default } = options;
    await loadTracing();
    const logger = failsafeLogger(tracedLogger(options.logger ?? silentLogger));
    const control = await openControl?.({ logger, clock });
    const connect = (role: RedisRole): RedisClient =>
      options.connection === undefined
        ? connectRedis(redisUrl, role, logger)
        : connectLike(options.connection, role, logger);
    const connections: WorkerConnections = {
      commands: connect('commands'),
      sender: connect('sender'),
      queue: connect('queue'),
    };
    try {
      const known = new KnownReplicas(connections.sender, options.redisReplicas);
      await requireDurableRedis(connections.commands, { allowVolatileRedis, logger, clock }, signal);
      const watch = allowVolatileRedis ? undefined : new RedisMonitor(connections.sender, known, clock, logger);
      const confirmations: WorkerConfirmations = watch
        ? { sender: watch.writes, commands: new WriteConfirmer({ redis: connections.commands, known }) }
        : { sender: 'reply', commands: 'reply' };
      const redisState = watch ?? ACCEPTED_REDIS;
      const redisClocks = new RedisClocks(connections.commands, clock, logger);
      const shared: Shared = { control, connections, confirmations, known, redisState, redisClocks, logger, clock };
      const accounts = options.accounts.map((account) => openWorker(account, options, shared));
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

  /** {@link stop}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<void> {
    // Publish the end first, so that others stand by while sends in progress get their responses.
    await Promise.all([this.#sharing?.stop(), ...this.accounts.map(async (account) => account.stop())]);
    await this.#watch?.stop();
    await this.#redisClocks.stop();
    await closeAll(this.#connections);
  }
}

export const WORKER_RULES = {
  ...WORKER_SETTINGS,
  journalDir: { ...WORKER_SETTINGS.journalDir, required: true },
  accounts: {
    rule: z.array(z.unknown(), 'must be a list of accounts').min(1, 'must name at least one account'),
    hidden: true,
    required: true,
  },
  connection: objectWith('duplicate', 'disconnect', 'defineCommand'),
  observe: functionRule,
  telemetry: objectWith(),
  ...WATCHING_RULES,
} as const satisfies OptionRules<CoreWorkerOptions>;

const ACCOUNT_RULES = { ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS } as const;

const OWN_GATEWAY_RULES = {
  platformId: ACCOUNT_IDENTITY.platformId,
  gateway: { ...ownGatewayRule, required: true },
  ...ACCOUNT_SETTINGS,
} as const;

/** @throws InvalidConfigError with all problems of a worker's options */
export function requireWorkerOptions(rules: Readonly<Record<string, OptionRule>>, options: CoreWorkerOptions): void {
  const problems = checkOptions(rules, options);
  // The list itself may be what is wrong.
  const { accounts } = Object(options) as { readonly accounts?: unknown };
  if (Array.isArray(accounts)) problems.push(...accounts.flatMap(checkAccount));
  requireNone(problems);
  const { connection } = options;
  if (connection === undefined) return;
  requireNone(checkTarget(options));
  requireFitClient(connection);
  const message = findUnlike(connection);
  if (message !== undefined) throw new InvalidConfigError([{ field: 'connection', message }]);
}

function checkAccount(
  account: AccountOptions | null | undefined,
  index: number,
  all: readonly (AccountOptions | null | undefined)[],
): Problem[] {
  if (Object(account) !== account) return checkOptions(ACCOUNT_RULES, account, `accounts[${index}]`);
  const { platformId, gateway } = account as AccountOptions;
  // Two workers of one account would each write its journal and take the lease from each other.
  if (all.findIndex((other) => other?.platformId === platformId) < index) {
    return [{ field: 'accounts', message: `must name each platformId once (${platformId} is there twice)` }];
  }
  if (gateway !== undefined && all.findIndex((other) => other?.gateway === gateway) < index) {
    // It pays from one merchant account, whose pace two senders would break.
    return [
      { field: 'accounts', message: `must each have a gateway of their own (that of ${platformId} is there twice)` },
    ];
  }
  const rules = gateway === undefined ? ACCOUNT_RULES : OWN_GATEWAY_RULES;
  const problems = checkOptions(rules, completeSettings(account as AccountOptions));
  return problems.map(({ field, message }) => ({ field: `${field} of account ${platformId}`, message }));
}

interface Shared {
  readonly control: WorkerControl | undefined;
  readonly connections: WorkerConnections;
  readonly confirmations: WorkerConfirmations;
  readonly known: KnownReplicas;
  readonly redisState: RedisCheck;
  readonly redisClocks: RedisClocks;
  readonly logger: Logger;
  readonly clock: Clock;
}

function openWorker(account: AccountOptions, options: CoreWorkerOptions, shared: Shared): AccountWorker {
  const { connections, confirmations, known, redisState, redisClocks, clock } = shared;
  const { journalDir, journalDays = WORKER_SETTINGS.journalDays.default, archiveDir } = options;
  const { platformId, baseUrl, secretKey, gateway: own, ...given } = account;
  const completed = completeSettings(given);
  const { api, timeoutMs, withdrawTimeoutMs } = completed;
  const audience = audienceOf(account);
  const logger = shared.logger.child({ platformId });
  const control = shared.control?.of({ platformId, audience, logger });
  const work = new RecentWork(clock, traceMeasurements(openObserver(platformId, options.observe), baseUrl, api));
  const access = own === undefined ? { api, baseUrl, secretKey } : { gateway: own };
  const client = openGateway({ ...access, platformId, logger, clock, timeoutMs, withdrawTimeoutMs });
  const gateway = observeGateway(client, work.observer, clock);
  const intervalMs = keptIntervalMs(completed.intervalMs, gateway.capabilities.minWithdrawGapMs);
  const settings = { ...completed, intervalMs };
  const telemetry = options.telemetry && failsafeTelemetry(options.telemetry);
  const opened = openAccount({
    ...{ platformId, clock, logger, connection: connections.commands, confirmation: confirmations.commands },
    firstPollAfterMs: settings.pollMinMs,
    ...(telemetry && { telemetry }),
  });
  const { ledger, queues, relay } = opened;
  const connection = connectLedger(connections.sender, platformId, clock);
  const senderLedger = new TracedSenderLedger(connection, confirmations.sender);
  const runtime: OpeningRuntime = {
    platformId,
    settings,
    audience: bindingOf(account),
    clock,
    logger,
    observer: work.observer,
    work,
    gateway,
    pacer: new Pacer(clock, settings),
    guardMs: GUARD_MS,
    machineUptime,
    ledger,
    polledLedger: new PayoutLedger(ledger.connection),
    senderLedger,
    queues,
    queueRedis: connections.queue,
    telemetry,
    relay,
    relayOutbox: async (changedBefore, signal) =>
      senderLedger.isOutboxEmpty ? 0 : relay.relayOutbox(changedBefore, signal),
    redisState,
    replicas: known.of(connection),
    redisClocks,
    hindrance: () => redisState.hindrance(ledger.connection.keys.ledger),
    acknowledgedReplicas: () => redisState.acknowledged(ledger.connection.keys.ledger),
    journalLocation: { host: hostname(), dir: resolve(journalDir) },
    journalKeptMs: journalDays * DAY_MS,
    makeOwner: () => `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
    onBroken: endProcess,
    makeToken: () => randomBytes(TOKEN_BYTES).toString('base64url'),
    control,
    archive: archiveDir === undefined ? undefined : new PayoutArchive({ dir: archiveDir, platformId }),
  };
  const openJournal = async (): Promise<FileSendJournal> =>
    FileSendJournal.open({
      dir: journalDir,
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
  return new AccountWorker(runtime, isShared(options.accounts) ? 'rest' : 'send', openJournal, async () =>
    opened.close(),
  );
}

async function closeAll({ commands, sender, queue }: WorkerConnections): Promise<void> {
  await Promise.all([closeRedis(commands), closeRedis(sender), closeRedis(queue)]);
}
