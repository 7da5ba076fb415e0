import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, every, within } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { GUARD_MS } from '../base/settings.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { JournalHead, SenderLedger } from '../ledger/sender-ledger.js';
import { publishJournalHead, type PublishedHead } from '../ledger/reads/workers.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import type { SendControl } from './account-control.js';
import type { AccountPart, AccountWorkerOptions } from './account-worker-options.js';
import { doActiveWork } from './active-work.js';
import type { JobWorkerContext } from './job-worker.js';
import { KeptPause } from './sender/kept-pause.js';
import { keptIntervalMs, Pacer } from './sender/pacer.js';
import type { SenderStatus } from './sender/send-report.js';
import type { ActiveSender } from './sender/send-until-decided.js';
import { SenderLoop, type SenderLoopOptions } from './sender/sender-loop.js';
import { followJournal } from './sharing/open-sharing.js';

interface AccountSendingOptions extends AccountWorkerOptions {
  readonly ledger: PayoutLedger;
  readonly senderLedger: RedisSenderLedger;
  /** Cannot give the lease. */
  readonly watchedLedger: SenderLedger;
  readonly relay: OutboxRelay;
  readonly jobs: JobWorkerContext;
  readonly journal: SendJournal;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** 48 bits: tokens must differ among the attempts of one payout. */
const TOKEN_BYTES = 6;

/**
 * Sends for an account in turns, as the process gets and gives up the account. Keeps what outlives a turn: pace,
 * pauses, spends.
 */
export class AccountSending {
  readonly #options: AccountSendingOptions;
  readonly #pacer: Pacer;
  readonly #pause: KeptPause | undefined;
  readonly #control: SendControl | undefined;
  readonly #heads: JournalHeadTeller;
  readonly #loopOptions: Omit<SenderLoopOptions, 'ledger' | 'stop'>;
  #loop: SenderLoop | undefined;
  #holdsLease = false;
  #leases = 0;

  constructor(options: AccountSendingOptions) {
    this.#options = options;
    const { clock, gateway, control, journal, ledger, senderLedger, relay, work, logger } = options;
    const intervalMs = keptIntervalMs(options.settings.intervalMs, gateway.capabilities.minWithdrawGapMs);
    const settings = { ...options.settings, intervalMs };
    this.#pacer = new Pacer({ clock, intervalMs, inFlightMaxMs: settings.inFlightMaxMs });
    const doubtMs = GUARD_MS + settings.inFlightMaxMs;
    this.#control = control?.open({
      ...{ journal, connection: ledger.connection, ledger, senderLedger },
      ...{ relay, gateway, doubtMs },
    });
    const authority = this.#control?.resumeAuthority;
    const { observer } = work;
    this.#pause =
      authority && new KeptPause({ clock, ledger: senderLedger, journal, authority, settings, observer, logger });
    const tell = async (head: JournalHead): Promise<void> => publishJournalHead(ledger.connection, head);
    this.#heads = new JournalHeadTeller({ journal, tell, clock, logger });
    this.#loopOptions = this.#describeLoop(settings);
  }

  /** When the next send is allowed, on the clock's scale. */
  get opensAt(): number {
    return this.#pacer.openAt;
  }

  /** Undefined while this process does not send. */
  get journalHead(): PublishedHead | undefined {
    return this.#holdsLease ? this.#heads.told : undefined;
  }

  get status(): SenderStatus {
    return this.#loop?.status ?? { role: 'standby' };
  }

  get holdsLease(): boolean {
    return this.#holdsLease;
  }

  async standBy(end: AbortSignal): Promise<void> {
    await this.#control?.standBy(end);
  }

  async rest(end: AbortSignal): Promise<void> {
    await followJournal(this.#options.journal, this.#options, end);
  }

  /** Works until the signal is aborted. Then it records the response of a send in progress and releases the lease. */
  async run(part: Exclude<AccountPart, 'rest'>, end: AbortSignal): Promise<void> {
    const { senderLedger, watchedLedger } = this.#options;
    const ledger = part === 'send' ? senderLedger : watchedLedger;
    const leases = this.#leases;
    this.#loop = new SenderLoop({ ...this.#loopOptions, ledger, stop: end });
    await this.#loop.run();
    this.#loop = undefined;
    // The next sender may publish the head of its own journal.
    if (this.#leases > leases) await this.#heads.tellLast();
  }

  /** Call it after the last outcome is journaled. */
  async close(): Promise<void> {
    const { journal, logger } = this.#options;
    await journal.close().catch((error: unknown) => {
      logger.warn({ error: (error as Error).message }, 'the send journal could not be closed');
    });
    await this.#heads.tellLast();
  }

  #describeLoop(settings: SenderLoopOptions['settings']): Omit<SenderLoopOptions, 'ledger' | 'stop'> {
    const authority = this.#control?.authority;
    const { clock, audience, gateway, judgement, journal, ledger, senderLedger, relay, logger } = this.#options;
    return {
      clock,
      audience,
      relayOutbox: async (changedBefore, signal) =>
        senderLedger.isOutboxEmpty ? 0 : relay.relayOutbox(changedBefore, signal),
      journal,
      journalPlace: { host: hostname(), dir: this.#options.journalDir },
      journalKeptMs: this.#options.journalDays * DAY_MS,
      gateway,
      pacer: this.#pacer,
      settings,
      guardMs: GUARD_MS,
      hindrance: () => judgement.hindrance(ledger.connection.keys.ledger),
      makeOwner: () => `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
      makeToken: () => randomBytes(TOKEN_BYTES).toString('base64url'),
      work: async (active, end) => this.#workWith(active, end),
      ...(authority && { authority }),
      ...(this.#pause && { pause: this.#pause }),
      observer: this.#options.work.observer,
      logger,
    };
  }

  async #workWith(active: ActiveSender, end: AbortSignal): Promise<void> {
    const { jobs, ledger, relay, gateway, settings, work } = this.#options;
    this.#holdsLease = true;
    this.#leases += 1;
    work.beginSending();
    try {
      await this.#control?.takeOver(end);
      const telling = this.#heads.keep(end);
      await doActiveWork(
        {
          ...jobs,
          ledger,
          relay,
          retentionDays: settings.retentionDays,
          archive: this.#options.archive,
          takeGaps: () => work.takeGaps(),
          onArchiveTrouble: (trouble) => {
            work.noteArchive(trouble);
          },
          gateway,
          balanceEveryMs: settings.balanceEveryMs,
          currenciesEveryMs: settings.currenciesEveryMs,
          control: this.#control,
        },
        active,
        end,
      );
      await telling;
    } finally {
      this.#holdsLease = false;
      work.endSending();
    }
  }
}

interface JournalHeadTellerOptions {
  readonly journal: Pick<SendJournal, 'head'>;
  readonly tell: (head: JournalHead) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const TELL_EVERY_MS = 10 * 60_000;

/** An unavailable Redis must not delay the end of the process. */
const TELL_LAST_WITHIN_MS = 500;

/** Publishes the journal's last hash to log and events: only such a copy elsewhere shows cut-off lines. */
export class JournalHeadTeller {
  readonly #options: JournalHeadTellerOptions;
  #told: PublishedHead | undefined;
  #arrived: string | undefined;

  constructor(options: JournalHeadTellerOptions) {
    this.#options = options;
  }

  /** Undefined while this process does not write the journal. */
  get told(): PublishedHead | undefined {
    return this.#told;
  }

  /** Publishes at once and every ten minutes until the signal is aborted. Never delays a send. */
  async keep(end: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await every(TELL_EVERY_MS, async () => this.#tell(), { clock, signal: end, onError: this.#onError });
    this.#told = undefined;
  }

  /** Publishes a changed head after the last line is written. */
  async tellLast(): Promise<void> {
    if (this.#options.journal.head?.hash === this.#arrived) return;
    await within(TELL_LAST_WITHIN_MS, this.#tell().catch(this.#onError));
  }

  /** The log has this head, and the next event follows. */
  readonly #onError = ({ message }: Error): void => {
    this.#options.logger.debug({ error: message }, 'cannot tell the head of the send journal');
  };

  async #tell(): Promise<void> {
    const { journal, tell, clock, logger } = this.#options;
    const { head } = journal;
    if (head === undefined) return;
    const { hash, journalId, sends } = head;
    this.#told = { ...head, at: clock.wallNow() };
    logger.info({ head: hash, journalId, sends }, 'head of the send journal');
    await tell(head);
    this.#arrived = hash;
  }
}
