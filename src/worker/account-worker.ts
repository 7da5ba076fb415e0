import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Telemetry } from 'bullmq';
import type { AccountSettings } from '../account-settings.js';
import { untilAborted, type Clock } from '../clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { RedisSenderLedger, type Durability } from '../ledger/redis-sender-ledger.js';
import { JOURNAL_WITNESS } from '../ledger/witness.js';
import type { Logger } from '../logger.js';
import { JobDelivery } from '../queues/job-delivery.js';
import { PayoutQueues } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';
import { mendQueueTimesRegularly } from './mend-queue-times.js';
import { Pacer } from './pacer.js';
import { applyRetention } from './retention.js';
import type { SendJournal } from './send-journal.js';
import { GUARD_MS, SenderRole, type SenderDuty, type SenderStatus } from './sender-role.js';
import { StatusJobs } from './status-jobs.js';
import { WithdrawJobs } from './withdraw-jobs.js';
import type { WorkerObserver } from './worker-observer.js';

/** Connections that the accounts of a process share. */
export interface WorkerConnections {
  readonly commands: RedisClient;
  readonly sender: RedisClient;
  readonly queue: RedisClient;
}

export interface AccountWorkerOptions {
  readonly platformId: number;
  readonly settings: AccountSettings;
  readonly connections: WorkerConnections;
  readonly durability: Durability;
  readonly gateway: GatewayClient;
  readonly journal: SendJournal;
  readonly clock: Clock;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

/** What an account's worker is doing. */
export type AccountStatus = SenderStatus | { readonly role: 'stopped' };

/** When the process ends and Redis does not take the last outcome, so long is it waited for. */
const GIVE_UP_AFTER_MS = 10_000;

/** One account's worker: stands by until it has the lease, then sends; polls transactions all the while. */
export class AccountWorker {
  readonly platformId: number;
  readonly ledger: PayoutLedger;
  readonly #options: AccountWorkerOptions;
  readonly #senderLedger: RedisSenderLedger;
  readonly #queues: PayoutQueues;
  readonly #delivery: JobDelivery;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #role: SenderRole;
  #isStopped = false;
  #running: Promise<void> | undefined;
  #statusJobs: StatusJobs | undefined;

  constructor(options: AccountWorkerOptions) {
    const { platformId, connections, clock, settings, logger, telemetry } = options;
    this.platformId = platformId;
    this.#options = options;
    this.ledger = new PayoutLedger(connectLedger(connections.commands, platformId, clock));
    this.#senderLedger = new RedisSenderLedger(
      connectLedger(connections.sender, platformId, clock),
      options.durability,
    );
    const { prefix } = this.ledger.connection.keys;
    const wallNow = (): number => clock.wallNow();
    this.#queues = new PayoutQueues(connections.commands, { prefix, wallNow, logger, ...(telemetry && { telemetry }) });
    this.#delivery = new JobDelivery({
      ledger: this.ledger,
      queues: this.#queues,
      firstPollAfterMs: settings.pollMinMs,
    });
    this.#role = new SenderRole({
      clock,
      ledger: this.#senderLedger,
      delivery: this.#delivery,
      journal: options.journal,
      gateway: options.gateway,
      pacer: new Pacer({ clock, intervalMs: settings.intervalMs, inFlightMaxMs: settings.inFlightMaxMs }),
      settings,
      guardMs: GUARD_MS,
      makeOwner: () => `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
      pause: async (reason) => this.ledger.pause(JOURNAL_WITNESS, reason),
      work: async (duty, end) => this.#work(duty, end),
      observer: options.observer,
      logger,
    });
  }

  get status(): AccountStatus {
    return this.#isStopped ? { role: 'stopped' } : this.#role.status;
  }

  /** Begins to stand by, send and poll. Safe to call twice. */
  start(): void {
    if (this.#running !== undefined) return;
    const { connections, clock, gateway, observer, logger, settings, telemetry } = this.#options;
    this.#statusJobs = new StatusJobs({
      redis: connections.queue,
      prefix: this.ledger.connection.keys.prefix,
      clock,
      ledger: this.ledger,
      gateway,
      observer,
      logger,
      pollMinMs: settings.pollMinMs,
      pollMaxMs: settings.pollMaxMs,
      pollRate: settings.pollRate,
      ...(telemetry && { telemetry }),
    });
    this.#running = this.#role.run({ stop: this.#stop.signal, giveUp: this.#giveUp.signal });
  }

  /**
   * Begins no new send, waits for the answer of the one under way and its recording, gives the lease back, and ends.
   * Safe to call twice, and before start.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    const giveUp = setTimeout(() => {
      this.#giveUp.abort();
    }, GIVE_UP_AFTER_MS);
    await this.#statusJobs?.close();
    await this.#running;
    clearTimeout(giveUp);
    await this.#queues.close();
    await this.#options.journal.close();
    this.#options.gateway.close();
    this.#isStopped = true;
  }

  /** What is done while this process is the sender: the withdraw jobs are run, the queues kept going, and old payouts removed. */
  async #work({ sender, onRefused, logger }: SenderDuty, end: AbortSignal): Promise<void> {
    const { clock, connections, settings, telemetry } = this.#options;
    const { pollMaxMs } = settings;
    const jobs = new WithdrawJobs({
      redis: connections.queue,
      prefix: this.ledger.connection.keys.prefix,
      clock,
      ledger: this.#senderLedger,
      sender,
      onAccepted: async (payoutId) => this.#followTransaction(payoutId),
      onRefused,
      logger,
      ...(telemetry && { telemetry }),
    });
    const mending = mendQueueTimesRegularly({ clock, queues: this.#queues, pollMaxMs, logger }, end);
    const retention = this.#applyRetention(end, logger);
    await untilAborted(end);
    await jobs.close();
    await mending;
    await retention;
  }

  async #applyRetention(signal: AbortSignal, logger: Logger): Promise<void> {
    const { retentionDays } = this.#options.settings;
    if (retentionDays === undefined) return;
    await applyRetention({ connection: this.ledger.connection, retentionDays, logger }, signal);
  }

  /** Where this fails, the outbox still knows that the poll job is missing. */
  async #followTransaction(payoutId: string): Promise<void> {
    try {
      await this.#delivery.addMissing('in_progress', [payoutId]);
      await this.ledger.clearOutbox('in_progress', [payoutId]);
    } catch (error) {
      this.#options.logger.warn({ payoutId, error: (error as Error).message }, 'the poll job will be added later');
    }
  }
}
