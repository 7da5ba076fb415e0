import type { AccountSettings } from '../account-settings.js';
import { isAborted, onAnyClock, untilAborted, type Clock } from '../clock.js';
import { RedisUnavailableError } from '../errors.js';
import type { WithdrawGateway } from '../gateway/withdraw-gateway.js';
import { findMismatch, type LedgerMismatch } from '../journal/find-mismatch.js';
import { describeJournal, type SendJournal } from '../journal/send-journal.js';
import type { JournalPlace, SenderLedger, SenderView } from '../ledger/sender-ledger.js';
import type { Logger } from '../logger.js';
import { LeaseKeeper, type HeldLease } from './lease-keeper.js';
import { OutcomeRecorder } from './outcome-recorder.js';
import type { Pacer } from './pacer.js';
import { recoverRegularly, type RecoveryOptions } from './recovery.js';
import { Sender } from './sender.js';
import { StopGrace } from './stop-grace.js';
import type { WorkerObserver } from './worker-observer.js';

/** What an account's worker is doing. */
export type SenderStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** It must not send: the reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string };

/** The settings that decide when may be sent. */
export type SendingSettings = Pick<
  AccountSettings,
  'intervalMs' | 'inFlightMaxMs' | 'leaseMs' | 'quarantineMs' | 'maxRejectionsInARow' | 'maxUnknownsInARow'
>;

/** What is done while the lease is held. */
export interface SenderDuty {
  readonly sender: Sender;
  /** To be told when journal and ledger contradict each other. */
  readonly onRefused: (mismatch: LedgerMismatch) => void;
  readonly logger: Logger;
}

export interface SenderRoleOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly delivery: RecoveryOptions['delivery'];
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly settings: SendingSettings;
  /** See {@link GUARD_MS}; a simulation may plant another. */
  readonly guardMs: number;
  /** Why Redis may not be trusted with a send now, or undefined. */
  readonly hindrance: () => string | undefined;
  /** A name for the lease that no other start of any process has. */
  readonly makeOwner: () => string;
  /** A token for an attempt that no other attempt of any process has. */
  readonly makeToken: () => string;
  /** Where the journal is, for operators. */
  readonly journalPlace: JournalPlace;
  /** For how long its files are kept, in ms. */
  readonly journalKeptMs: number;
  /** Aborted when the role is to be given up: no new send begins; the one under way gets its response. */
  readonly stop: AbortSignal;
  /** Has payouts sent until the signal is aborted, and returns once the send under way is over. */
  readonly work: (duty: SenderDuty, end: AbortSignal) => Promise<void>;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

/** What a sender that ends has to know of its end. */
interface Doubtful {
  readonly end: AbortSignal;
  readonly lost: AbortSignal;
  readonly findMismatch: () => LedgerMismatch | undefined;
}

/** Once a process is to stop, Redis is waited for this long to take the last outcome, or an objection. */
const STOP_GRACE_MS = 10_000;
const OBJECT_RETRY_MS = 500;
const RESTART_AFTER_MS = 1_000;

/** What an operator does about a refusal, in the log. */
const ADOPT_HINT =
  'nothing is sent: journal and ledger contradict each other. Bring back the newest copy of the Redis data if there is one; ' +
  'else `payouts stats` shows the `payouts adopt-ledger` command that ends this';
const JOURNAL_HINT =
  'this process sends nothing: its send journal cannot be trusted. See "The send journal" in docs/operations.md';
const FORMAT_HINT = 'this process sends nothing: the ledger was written by a newer version';

/** The role of an account's one sender: stands by until the lease is there, then has payouts sent for as long as it is held. */
export class SenderRole {
  readonly #options: SenderRoleOptions;
  readonly #stopGrace: StopGrace;
  #status: SenderStatus = { role: 'standby' };
  /** The outcomes in the journal were told to the ledger since this process was the sender last. */
  #hasReplayed = false;

  constructor(options: SenderRoleOptions) {
    this.#options = options;
    this.#stopGrace = new StopGrace({ clock: options.clock, stop: options.stop, graceMs: STOP_GRACE_MS });
  }

  get status(): SenderStatus {
    return this.#status;
  }

  /** Runs until it is to stop. */
  async run(): Promise<void> {
    const { clock, stop, logger } = this.#options;
    while (!isAborted(stop)) {
      const held = await this.#makeKeeper().acquire(stop);
      if (held === undefined) return;
      try {
        await this.#sendWhileHeld(held);
      } catch (error) {
        held.abandon();
        logger.error({ error: (error as Error).message }, 'sender loop failed; restarting');
        await clock.sleep(RESTART_AFTER_MS, stop);
      }
      this.#hasReplayed = false;
      // A refusal stands until nothing is objected to any more.
      if (this.#status.role === 'sender') this.#status = { role: 'standby' };
    }
  }

  #makeKeeper(): LeaseKeeper {
    const { clock, ledger, journal, journalPlace, settings, guardMs, makeOwner, logger } = this.#options;
    const { leaseMs, quarantineMs, intervalMs, inFlightMaxMs } = settings;
    return new LeaseKeeper({
      clock,
      ledger,
      owner: makeOwner(),
      describeJournal: () => describeJournal(journal, journalPlace, clock.wallNow()),
      journalKeptMs: this.#options.journalKeptMs,
      leaseMs,
      quarantineMs,
      intervalMs,
      unansweredMs: (inFlightMs) => onAnyClock(guardMs + Math.max(inFlightMaxMs, inFlightMs)) + intervalMs,
      findObjection: async () => this.#findObjection(),
      witnessesAll: (view) => this.#witnessesAll(view),
      onUnsupported: (reason) => {
        this.#refuse(reason, FORMAT_HINT);
      },
      logger,
    });
  }

  /**
   * The journal first, the ledger after: the present holder may add to both in between, and the ledger leads.
   *
   * A contradiction that lies with this process alone (a journal that it cannot read, or that lost entries) stops nobody
   * else: another may send for the account in good order.
   */
  async #findObjection(): Promise<string | undefined> {
    const { journal, ledger } = this.#options;
    try {
      await journal.reload();
    } catch (error) {
      this.#refuse((error as Error).message, JOURNAL_HINT);
      return (error as Error).message;
    }
    const view = await ledger.readSender();
    const mismatch = await findMismatch(journal, view, ledger);
    if (mismatch === undefined) {
      if (this.#status.role === 'refused') this.#status = { role: 'standby' };
      await this.#notePeers(view);
      await this.#replayOutcomes();
      return undefined;
    }
    this.#refuse(mismatch.reason, mismatch.kind === 'ledger' ? ADOPT_HINT : JOURNAL_HINT);
    const isNoted = view.objections.some(({ journalId }) => journalId === journal.journalId);
    if (mismatch.kind === 'ledger' && !isNoted) await this.#object(mismatch);
    return mismatch.reason;
  }

  /** Also while another process sends: only this journal may know what became of a payout that is `unknown`. */
  async #replayOutcomes(): Promise<void> {
    if (this.#hasReplayed) return;
    const { settings, guardMs, logger } = this.#options;
    const doubtMs = onAnyClock(guardMs + settings.inFlightMaxMs);
    const recorder = new OutcomeRecorder({ ...this.#options, ...settings, doubtMs });
    try {
      this.#hasReplayed = await recorder.replayAll();
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw error;
      // An outcome that Redis refuses must not keep the account from sending, and not unseen either.
      logger.error({ error: (error as Error).message }, 'cannot record an outcome of the send journal');
      this.#hasReplayed = true;
    }
  }

  /** Not asked of the ledger alone: one that came back older does not know who has sent since. */
  #witnessesAll({ sends, lastJournalId, journals }: SenderView): boolean {
    const { journalId, peers } = this.#options.journal;
    if (sends > 0 && lastJournalId !== journalId) return false;
    return [...journals, ...peers].every((known) => known.journalId === journalId);
  }

  /** If Redis forgets them, this journal still knows which others have to be read. */
  async #notePeers({ journals }: SenderView): Promise<void> {
    const { journal } = this.#options;
    const known = [journal.journalId, ...journal.peers.map(({ journalId }) => journalId)];
    const unknown = journals.filter(({ journalId }) => !known.includes(journalId));
    if (unknown.length > 0) await journal.notePeers(unknown);
  }

  /** Says it once. */
  #refuse(reason: string, hint: string): void {
    const { status } = this;
    if (status.role === 'refused' && status.reason === reason) return;
    this.#status = { role: 'refused', reason };
    this.#options.logger.error({ reason }, hint);
  }

  async #object({ kind, reason }: LedgerMismatch): Promise<void> {
    const { journal, journalPlace, ledger, clock } = this.#options;
    const { journalId, ledger: known } = journal;
    await ledger.object({ journalId, kind, reason, ...journalPlace, sends: known?.sends ?? 0, at: clock.wallNow() });
  }

  async #sendWhileHeld(held: HeldLease): Promise<void> {
    const { clock, delivery, stop } = this.#options;
    const { lease } = held;
    const logger = this.#options.logger.child({ epoch: lease.epoch });
    await this.#bindJournal(held);
    const sender = this.#makeSender(held, logger);
    await sender.settleLeftovers();
    const refused = new AbortController();
    const failed = new AbortController();
    let mismatch: LedgerMismatch | undefined;
    const onRefused = (found: LedgerMismatch): void => {
      mismatch ??= found;
      this.#refuse(found.reason, ADOPT_HINT);
      refused.abort();
    };
    this.#status = { role: 'sender', epoch: lease.epoch };
    const end = AbortSignal.any([stop, held.lost, refused.signal, failed.signal]);
    const over = new AbortController();
    const work = [
      this.#options.work({ sender, onRefused, logger }, end),
      recoverRegularly({ clock, delivery, sender, onRefused, logger }, end),
    ];
    void Promise.allSettled(work).then(() => {
      over.abort();
    });
    const parts = [...work, this.#objectUntil(over.signal, { end, lost: held.lost, findMismatch: () => mismatch })];
    try {
      await Promise.all(parts);
    } finally {
      // Where one part fails, the lease is kept until the others have ended too.
      failed.abort();
      await Promise.allSettled(parts);
    }
    // Whoever refuses this ledger must not look like a holder that ended in good order.
    if (refused.signal.aborted) held.abandon();
    else await held.release();
  }

  #makeSender(held: HeldLease, logger: Logger): Sender {
    const { settings } = this.#options;
    return new Sender({
      ...this.#options,
      ...settings,
      held,
      stopGrace: this.#stopGrace,
      onUnrecordable: (reason) => {
        this.#status = reason === undefined ? { role: 'sender', epoch: held.lease.epoch } : { role: 'refused', reason };
      },
      logger,
    });
  }

  /**
   * Stops the whole account where journal and ledger disagree: a worker on another host, whose journal has not seen what
   * this one has, would send on. The lease is kept until that is done, for the same reason; and one that was lost may
   * have been lost because Redis came back older.
   * @param over - the work of the sender has ended. The send under way can take long: until then the objection is made
   * again where a Redis that came back older once more has forgotten it.
   */
  async #objectUntil(over: AbortSignal, { end, lost, findMismatch }: Doubtful): Promise<void> {
    const { clock, logger } = this.#options;
    await untilAborted(end);
    const isTooLate = this.#stopGrace.start();
    let mismatch = findMismatch();
    if (mismatch === undefined && !lost.aborted) return;
    while (!isTooLate()) {
      const isLast = over.aborted;
      try {
        if (mismatch === undefined) await this.#findObjection();
        else await this.#object(mismatch);
        mismatch = undefined;
        if (isLast) return;
      } catch (error) {
        const fields = { error: (error as Error).message };
        if (mismatch === undefined) logger.debug(fields, 'cannot compare ledger and journal yet');
        else logger.warn(fields, 'cannot record the objection yet');
      }
      await clock.sleep(OBJECT_RETRY_MS, isLast ? undefined : over);
    }
  }

  /** A journal that is new on this host, or whose ledger was adopted elsewhere, learns with which ledger it is used. */
  async #bindJournal({ view, lease }: HeldLease): Promise<void> {
    const { journal, logger } = this.#options;
    if (journal.ledger?.ledgerId === view.ledgerId) return;
    if (journal.ledger === undefined && view.sends > 0) {
      logger.warn(
        { sends: view.sends },
        'the send journal of this host is new: it can witness nothing that was sent before',
      );
    }
    const { ledgerId, sends, last } = view;
    await journal.bind({ ledgerId, epoch: lease.epoch, sends, token: last });
  }
}
