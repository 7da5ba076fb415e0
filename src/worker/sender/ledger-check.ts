import {
  describeLostActs,
  findForgottenSend,
  findMismatch,
  type LedgerMismatch,
  snapshotJournal,
} from '../../journal/find-mismatch.js';
import { JournalDamagedError, type ReadableJournal } from '../../journal/send-journal.js';
import type { LedgerGlance, SendAttempt, SenderView } from '../../ledger/sender-ledger.js';
import type { HeldLease } from './lease-keeper.js';
import type { LineOfSends, OwnSends } from './own-sends.js';
import type { SenderRuntime } from './sender-runtime.js';

type LedgerConflict =
  { readonly kind: 'lease_lost' } | { readonly kind: 'ledger_mismatch'; readonly mismatch: LedgerMismatch };

const OTHER_LEDGER: LedgerMismatch = {
  kind: 'ledger',
  reason: 'Redis was flushed or exchanged while this process was the sender.',
};

const OTHER_SENDS: LedgerMismatch = {
  kind: 'ledger',
  reason: 'Redis came back older than it was: its last send differs from the one that this process began.',
};

/** A deleted record leaves count and last token as they are. One script for the newest sends, so at every second look. */
const COMPARE_SENDS_EVERY_MS = 15_000;

/**
 * Compares the ledger with what the sender knows, from memory and journal. Reading the ledger throws
 * RedisUnavailableError.
 */
export class LedgerCheck {
  readonly heldLease: HeldLease;
  readonly sends: OwnSends;
  /** How many acts of people the ledger counted when it was asked last, and how many a journal had. */
  acts = 0;
  keptActs = 0;
  readonly #runtime: SenderRuntime;
  /** How often another process was found to have written to the journal. */
  #distrusts = 0;
  /** The value of `#distrusts` up to which the journal was compared. */
  #compared = 0;
  /** When the journal's sends were last looked for in the ledger, on the clock's scale; at first before the lease. */
  #sendsComparedAt: number;

  constructor(runtime: SenderRuntime, heldLease: HeldLease, sends: OwnSends) {
    this.#runtime = runtime;
    this.heldLease = heldLease;
    this.sends = sends;
    this.#sendsComparedAt = runtime.clock.now();
  }

  /** @returns undefined if an earlier begin of this process took effect after its reply was lost */
  explainDifference(found: LineOfSends & Pick<SenderView, 'acts'>): LedgerMismatch | undefined {
    if (found.sendCount < this.sends.line.sendCount) return describeLoss(found.sendCount, this.sends.line.sendCount);
    const lostActs = this.#findLostActs(found);
    if (lostActs !== undefined) return lostActs;
    if (!this.sends.hasUnwrittenToken(found.last)) return OTHER_SENDS;
    this.sends.takeLine({ sendCount: found.sendCount, last: found.last });
    return undefined;
  }

  get otherLedger(): LedgerMismatch {
    return OTHER_LEDGER;
  }

  /** Whether the ledger is as this process knows it, so that no comparison would find anything. */
  isAsKnown({ ledgerId, sendCount, last, acts, keptActs, sending }: LedgerGlance): boolean {
    const { line, hasCurrent } = this.sends;
    const isSameLedger =
      ledgerId === this.heldLease.view.ledgerId && sendCount === line.sendCount && last === line.last;
    return isSameLedger && acts === this.#runtime.journal.acts && keptActs >= acts && sending <= (hasCurrent ? 1 : 0);
  }

  async findMismatch(): Promise<LedgerMismatch | undefined> {
    const [known, { acts }] = [this.sends.line, this.#runtime.journal];
    const view = await this.#runtime.senderLedger.readSender();
    this.acts = view.acts;
    this.keptActs = view.keptActs;
    return this.#findLostActs(view, acts) ?? this.#compare(view, known);
  }

  /** Someone may delete the record of a sent payout while this process is the sender. */
  async findForgottenSend(): Promise<LedgerMismatch | undefined> {
    const { clock, journal, senderLedger } = this.#runtime;
    const now = clock.now();
    if (now - this.#sendsComparedAt < COMPARE_SENDS_EVERY_MS) return undefined;
    const found = await findForgottenSend(journal, senderLedger);
    this.#sendsComparedAt = now;
    return found;
  }

  /** @param known - what the journal knew before the ledger was read */
  #findLostActs({ acts }: Pick<SenderView, 'acts'>, known = this.#runtime.journal.acts): LedgerMismatch | undefined {
    if (acts >= known) return undefined;
    return { kind: 'ledger', reason: `Redis came back older than it was: ${describeLostActs(acts, known)}.` };
  }

  /** @param known - the line of sends before the ledger was read */
  #compare(view: SenderView, known: LineOfSends): LedgerMismatch | undefined {
    if (view.ledgerId !== this.heldLease.view.ledgerId) return OTHER_LEDGER;
    if (view.sendCount < known.sendCount) return describeLoss(view.sendCount, known.sendCount);
    if (!this.#isHolder(view)) return undefined;
    // This process began sends while the ledger was read; the last send seen may be any of them.
    if (this.sends.line !== known) return undefined;
    return view.last === known.last || this.sends.hasUnwrittenToken(view.last) ? undefined : OTHER_SENDS;
  }

  #isHolder({ lease }: SenderView): boolean {
    const { owner, epoch } = this.heldLease.lease;
    return lease?.owner === owner && lease.epoch === epoch;
  }

  get hasUncompared(): boolean {
    return this.#compared !== this.#distrusts;
  }

  /** Blocks every begin until another process's entries in the journal are compared. */
  distrustJournal(): void {
    this.#distrusts += 1;
  }

  /**
   * Whether another sender may have sent this attempt number: it journaled one, or the journal is unreadable.
   * If the journal's disk hangs, the ledger decides, so that another process can send the payout.
   * If it has this attempt last, and every heartbeat of this process, it is unchanged since the begin.
   */
  async mayAnotherHaveSent(attempt: SendAttempt): Promise<boolean> {
    const { journal } = this.#runtime;
    try {
      if (await journal.changedByOthers()) {
        this.distrustJournal();
        await journal.reload();
      }
      return journal.knowsFromAnother(attempt);
    } catch {
      if (!journal.isStalled || journal.knowsFromAnother(attempt)) return true;
      return !(await this.#isLastOf(attempt).catch(() => false));
    }
  }

  async #isLastOf({ token }: SendAttempt): Promise<boolean> {
    const { heldLease } = this;
    const known = this.sends.line;
    const view = await this.#runtime.senderLedger.readSender();
    const heartbeat = view.lease?.heartbeat ?? 0;
    const isSame = view.last === token && known.last === token && view.sendCount === known.sendCount;
    return (
      isSame && this.#isHolder(view) && view.ledgerId === heldLease.view.ledgerId && heartbeat >= heldLease.heartbeat()
    );
  }

  /**
   * Compares what another process wrote to the journal. A stalled earlier sender may have written late; the ledger then
   * knows all that the journal knows. Otherwise it came back older.
   * Reads the journal first: if this process loses the lease in between, the ledger shows it.
   * @returns why nothing may be sent now
   * @throws Error if the journal cannot be read
   */
  async compareJournal(): Promise<LedgerConflict | undefined> {
    const { senderLedger, journal } = this.#runtime;
    if (!this.hasUncompared && !(await journal.changedByOthers())) return undefined;
    this.distrustJournal();
    // The recovery may read further entries meanwhile; the next call compares them.
    const distrusts = this.#distrusts;
    const read = await this.#readJournal();
    const view = await senderLedger.readSender();
    const rollback = this.#compare(view, this.sends.line);
    if (rollback !== undefined) return refuse(rollback);
    // Another process, such as `adopt-ledger`, took the lease; this one has not noticed yet.
    if (!this.#isHolder(view)) return { kind: 'lease_lost' };
    if (read instanceof JournalDamagedError) return refuse({ kind: 'journal', reason: read.message });
    const mismatch = await findMismatch(read, view, senderLedger);
    if (mismatch !== undefined) return refuse(mismatch);
    this.#compared = distrusts;
    return undefined;
  }

  async #readJournal(): Promise<ReadableJournal | JournalDamagedError> {
    const { journal } = this.#runtime;
    try {
      await journal.reload();
      return snapshotJournal(journal);
    } catch (error) {
      if (error instanceof JournalDamagedError) return error;
      throw error;
    }
  }
}

function refuse(mismatch: LedgerMismatch): LedgerConflict {
  return { kind: 'ledger_mismatch', mismatch };
}

function describeLoss(sends: number, known: number): LedgerMismatch {
  return {
    kind: 'ledger',
    reason: `Redis came back older than it was: it knows ${sends} sends, this process ${known}.`,
  };
}
