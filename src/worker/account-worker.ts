import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Telemetry } from 'bullmq';
import type { AccountSettings } from '../account-settings.js';
import { isAborted, untilAborted, type Clock } from '../clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import { connectLedger } from '../ledger/ledger-connection.js';
import { PayoutLedger } from '../ledger/payout-ledger.js';
import { RedisSenderLedger, type Durability } from '../ledger/redis-sender-ledger.js';
import { JOURNAL_WITNESS } from '../ledger/witness.js';
import type { Logger } from '../logger.js';
import { JobDelivery } from '../queues/job-delivery.js';
import { PayoutQueues } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';
import { LeaseKeeper, type HeldLease } from './lease-keeper.js';
import { mendQueueTimesRegularly } from './mend-queue-times.js';
import { onAnyClock, Pacer } from './pacer.js';
import { recoverRegularly, recoverSends } from './recovery.js';
import { ADOPT_HINT, findDisagreement, type SendJournal } from './send-journal.js';
import { applyRetention } from './retention.js';
import { Sender } from './sender.js';
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
export type AccountStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** It must not send: the reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string }
  | { readonly role: 'stopped' };

/** From asking to begin a send until its first byte. A process that was stopped for longer must not write. */
export const GUARD_MS = 1_000;

const PAUSE_RETRY_MS = 500;

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
  readonly #pacer: Pacer;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  #status: AccountStatus = { role: 'standby' };
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
    this.#pacer = new Pacer({ clock, intervalMs: settings.intervalMs, inFlightMaxMs: settings.inFlightMaxMs });
  }

  get status(): AccountStatus {
    return this.#status;
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
    this.#running = this.#run();
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
    this.#status = { role: 'stopped' };
  }

  async #run(): Promise<void> {
    const { clock, logger, settings } = this.#options;
    while (!isAborted(this.#stop.signal)) {
      const keeper = new LeaseKeeper({
        clock,
        ledger: this.#senderLedger,
        owner: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
        leaseMs: settings.leaseMs,
        quarantineMs: settings.quarantineMs,
        intervalMs: settings.intervalMs,
        unansweredMs: onAnyClock(GUARD_MS + settings.inFlightMaxMs) + settings.intervalMs,
        findObjection: async () => {
          const objection = await this.#findObjection();
          this.#noteObjection(objection);
          if (objection !== undefined) await this.ledger.pause(JOURNAL_WITNESS, objection);
          return objection;
        },
        logger,
      });
      const held = await keeper.acquire(this.#stop.signal);
      if (held === undefined) return;
      try {
        await this.#sendWhileHeld(held);
      } catch (error) {
        held.abandon();
        logger.error({ error: (error as Error).message }, 'the sender was interrupted and starts anew');
        await clock.sleep(1_000, this.#stop.signal);
      }
      this.#status = { role: 'standby' };
    }
  }

  /** The journal first, the ledger after: the present holder may add to both in between, and the ledger leads. */
  async #findObjection(): Promise<string | undefined> {
    const { journal, clock } = this.#options;
    try {
      await journal.reload();
    } catch (error) {
      return (error as Error).message;
    }
    return findDisagreement(journal, await this.#senderLedger.readSender(), this.#senderLedger, clock.wallNow());
  }

  /** Says it once; a status that shows it stays until there is no objection any more. */
  #noteObjection(reason: string | undefined): void {
    if (reason === undefined) {
      if (this.#status.role === 'refused') this.#status = { role: 'standby' };
      return;
    }
    const { status } = this;
    if (status.role === 'refused' && status.reason === reason) return;
    this.#status = { role: 'refused', reason };
    this.#options.logger.error({ reason }, ADOPT_HINT);
  }

  /**
   * Stops the whole account: a worker on another host, whose journal has not seen what this one has, would send on.
   * Keeps the lease until that is done, for the same reason.
   */
  async #pauseAccount(reason: string): Promise<void> {
    const { clock, logger } = this.#options;
    while (!this.#giveUp.signal.aborted) {
      try {
        await this.ledger.pause(JOURNAL_WITNESS, reason);
        return;
      } catch (error) {
        logger.warn({ error: (error as Error).message }, 'cannot pause the account yet');
        await clock.sleep(PAUSE_RETRY_MS, this.#giveUp.signal);
      }
    }
  }

  async #sendWhileHeld(held: HeldLease): Promise<void> {
    const { clock, journal, gateway, observer, logger, settings, connections, telemetry } = this.#options;
    const log = logger.child({ epoch: held.lease.epoch });
    await this.#bindJournal(held);
    await recoverSends({ ledger: this.#senderLedger, lease: held.lease, logger: log });
    const sender = new Sender({
      clock,
      ledger: this.#senderLedger,
      journal,
      gateway,
      pacer: this.#pacer,
      held,
      giveUp: this.#giveUp.signal,
      guardMs: GUARD_MS,
      maxRejectionsInARow: settings.maxRejectionsInARow,
      maxUnknownsInARow: settings.maxUnknownsInARow,
      observer,
      logger: log,
    });
    const refused = new AbortController();
    const onRefused = (reason: string): void => {
      this.#noteObjection(reason);
      refused.abort(reason);
    };
    const jobs = new WithdrawJobs({
      redis: connections.queue,
      prefix: this.ledger.connection.keys.prefix,
      clock,
      ledger: this.#senderLedger,
      sender,
      onAccepted: async (payoutId) => this.#followTransaction(payoutId),
      onRefused,
      logger: log,
      ...(telemetry && { telemetry }),
    });
    this.#status = { role: 'sender', epoch: held.lease.epoch };
    const end = AbortSignal.any([this.#stop.signal, held.lost, refused.signal]);
    const recovery = recoverRegularly(
      {
        clock,
        ledger: this.#senderLedger,
        delivery: this.#delivery,
        lease: held.lease,
        sender,
        onRefused,
        logger: log,
      },
      end,
    );
    const { pollMaxMs } = settings;
    const mending = mendQueueTimesRegularly({ clock, queues: this.#queues, pollMaxMs, logger: log }, end);
    const retention = this.#applyRetention(end, log);
    await untilAborted(end);
    if (refused.signal.aborted) await this.#pauseAccount(String(refused.signal.reason));
    await jobs.close();
    await recovery;
    await mending;
    await retention;
    // Whoever refuses this ledger must not look like a holder that ended in good order.
    if (refused.signal.aborted) held.abandon();
    else await held.release();
  }

  /** A journal that is new on this host learns with which ledger it is used. */
  async #bindJournal({ view, lease }: HeldLease): Promise<void> {
    const { journal, logger } = this.#options;
    if (journal.ledger !== undefined) return;
    if (view.sends > 0) {
      logger.warn(
        { sends: view.sends },
        'the send journal of this host is new: it can witness nothing that was sent before',
      );
    }
    await journal.bind({ ledgerId: view.ledgerId, epoch: lease.epoch, sends: view.sends });
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
