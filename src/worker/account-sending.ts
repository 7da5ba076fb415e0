import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, every, within } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { GUARD_MS } from '../base/settings.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { JournalHead, SenderLedger } from '../ledger/sender-ledger.js';
import { tellJournalHead, type ToldHead } from '../ledger/workers.js';
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
  /** The same, but it never gives the lease. */
  readonly watchedLedger: SenderLedger;
  readonly relay: OutboxRelay;
  readonly jobs: JobWorkerContext;
  readonly journal: SendJournal;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** 48 bits: they have to differ among the attempts of one payout. */
const TOKEN_BYTES = 6;

/**
 * Sends for an account with a journal that was opened: one turn after the other, as the process gets the account and gives
 * it up. What must be remembered across turns is kept here: the pace, the pauses, what was spent.
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
  /** How often this process had the lease. */
  #leases = 0;

  constructor(options: AccountSendingOptions) {
    this.#options = options;
    const { clock, gateway, control, journal, ledger, senderLedger, relay, work, logger } = options;
    const intervalMs = keptIntervalMs(options.settings.intervalMs, gateway.capabilities.minWithdrawGapMs);
    const settings = { ...options.settings, intervalMs };
    this.#pacer = new Pacer({ clock, intervalMs, inFlightMaxMs: settings.inFlightMaxMs });
    const doubtMs = GUARD_MS + settings.inFlightMaxMs;
    this.#control = control?.open({ journal, ledger, senderLedger, relay, gateway, doubtMs });
    const authority = this.#control?.resumeAuthority;
    const { observer } = work;
    this.#pause =
      authority && new KeptPause({ clock, ledger: senderLedger, journal, authority, settings, observer, logger });
    const tell = async (head: JournalHead): Promise<void> => tellJournalHead(ledger.connection, head);
    this.#heads = new JournalHeadTeller({ journal, tell, clock, logger });
    this.#loopOptions = this.#describeLoop(settings);
  }

  /** The next send is allowed from then on, on the clock's scale. */
  get opensAt(): number {
    return this.#pacer.openAt;
  }

  /** Where the journal ended when that was told last; undefined while this process does not send. */
  get journalHead(): ToldHead | undefined {
    return this.#holdsLease ? this.#heads.told : undefined;
  }

  get status(): SenderStatus {
    return this.#loop?.status ?? { role: 'standby' };
  }

  get holdsLease(): boolean {
    return this.#holdsLease;
  }

  /** Runs beside the turns, until the signal is aborted. */
  async standBy(end: AbortSignal): Promise<void> {
    await this.#control?.standBy(end);
  }

  /** Another process with the same journal works for the account. */
  async rest(end: AbortSignal): Promise<void> {
    await followJournal(this.#options, end);
  }

  /** Does its part until the signal is aborted; then the response of a send in progress is recorded and the lease released. */
  async run(part: Exclude<AccountPart, 'rest'>, end: AbortSignal): Promise<void> {
    const { senderLedger, watchedLedger } = this.#options;
    const ledger = part === 'send' ? senderLedger : watchedLedger;
    const leases = this.#leases;
    this.#loop = new SenderLoop({ ...this.#loopOptions, ledger, stop: end });
    await this.#loop.run();
    this.#loop = undefined;
    // The next sender may have a journal of its own, and tell of that one.
    if (this.#leases > leases) await this.#heads.tellLast();
  }

  /** The process ends: the last outcome is in the journal then. */
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
  /** Tells those who read the account's events. */
  readonly tell: (head: JournalHead) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const TELL_EVERY_MS = 10 * 60_000;

/** An unavailable Redis keeps no process from ending. */
const TELL_LAST_WITHIN_MS = 500;

/**
 * Tells those outside where the send journal ends: in the log and as an event. A chain of hashes shows what was altered, but not
 * that lines at the end were cut off, unless somebody else remembers the last one.
 */
export class JournalHeadTeller {
  readonly #options: JournalHeadTellerOptions;
  #told: ToldHead | undefined;
  /** The hash that was told last, and arrived. */
  #arrived: string | undefined;

  constructor(options: JournalHeadTellerOptions) {
    this.#options = options;
  }

  /** What this process told last, while it writes the journal. */
  get told(): ToldHead | undefined {
    return this.#told;
  }

  /** Tells it at once and every ten minutes, until the signal is aborted. Never in the way of a send. */
  async keep(end: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await every(TELL_EVERY_MS, async () => this.#tell(), { clock, signal: end, onError: this.#onError });
    this.#told = undefined;
  }

  /** Tells it once more where it has changed: the process has written its last line. */
  async tellLast(): Promise<void> {
    if (this.#options.journal.head?.hash === this.#arrived) return;
    await within(TELL_LAST_WITHIN_MS, this.#tell().catch(this.#onError));
  }

  /** The log has it, and the next one follows. */
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
