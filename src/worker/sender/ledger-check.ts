import { findMismatch, snapshotJournal, type LedgerMismatch } from '../../journal/find-mismatch.js';
import { JournalDamagedError, type ReadableJournal, type SendJournal } from '../../journal/send-journal.js';
import type { SendAttempt, SenderLedger, SenderView } from '../../ledger/sender-ledger.js';
import type { HeldLease } from './lease-keeper.js';
import type { OwnAttempts } from './own-attempts.js';

export interface LedgerCheckOptions {
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly heldLease: HeldLease;
  readonly ownAttempts: OwnAttempts;
}

/** The sends that a ledger has seen: their number, and the token of the last one. */
export interface LineOfSends {
  readonly sendCount: number;
  readonly last: string;
}

/** Why nothing may be sent: another process has the lease, or the ledger is not the one that this process knows. */
export type LedgerConflict =
  { readonly kind: 'lease_lost' } | { readonly kind: 'ledger_mismatch'; readonly mismatch: LedgerMismatch };

const OTHER_LEDGER: LedgerMismatch = {
  kind: 'ledger',
  reason: 'Redis was flushed or exchanged while this process was the sender.',
};

const OTHER_SENDS: LedgerMismatch = {
  kind: 'ledger',
  reason: 'Redis came back older than it was: its last send differs from the one that this process began.',
};

/** Compares the ledger with what the sender knows of it: from memory while it holds the lease, and from its journal. */
export class LedgerCheck {
  readonly #options: LedgerCheckOptions;
  #line: LineOfSends;
  /** How often another process was found to have written to the journal. */
  #distrusts = 0;
  /** Up to which of these what it wrote was judged. */
  #judged = 0;

  constructor(options: LedgerCheckOptions) {
    this.#options = options;
    const { sendCount, last } = options.heldLease.view;
    this.#line = { sendCount, last };
  }

  /** What the ledger must have seen. */
  get line(): LineOfSends {
    return this.#line;
  }

  /** The ledger has begun a send of this process. */
  noteBegun(line: LineOfSends): void {
    this.#line = line;
  }

  /**
   * The ledger did not let an attempt begin, because it has seen another line of sends.
   * @returns undefined where a begin of this process, whose reply was lost, took effect after all
   */
  explainDifference(found: LineOfSends): LedgerMismatch | undefined {
    if (found.sendCount < this.#line.sendCount) return describeLoss(found.sendCount, this.#line.sendCount);
    if (!this.#options.ownAttempts.hasUnwrittenToken(found.last)) return OTHER_SENDS;
    this.#line = found;
    return undefined;
  }

  /** That the ledger is flushed or exchanged. */
  get otherLedger(): LedgerMismatch {
    return OTHER_LEDGER;
  }

  /**
   * Asks the ledger whether it has seen all that this process sent.
   * @throws RedisUnavailableError
   */
  async findMismatch(): Promise<LedgerMismatch | undefined> {
    const known = this.#line;
    return this.#compare(await this.#options.ledger.readSender(), known);
  }

  /** @param known - the line of sends as it was known before the ledger was asked */
  #compare(view: SenderView, known: LineOfSends): LedgerMismatch | undefined {
    if (view.ledgerId !== this.#options.heldLease.view.ledgerId) return OTHER_LEDGER;
    if (view.sendCount < known.sendCount) return describeLoss(view.sendCount, known.sendCount);
    if (!this.#isHolder(view)) return undefined;
    // This process went on while the ledger was asked: what that saw last may be any of its begins in between.
    if (this.#line !== known) return undefined;
    return view.last === known.last || this.#options.ownAttempts.hasUnwrittenToken(view.last) ? undefined : OTHER_SENDS;
  }

  #isHolder({ lease }: SenderView): boolean {
    const { owner, epoch } = this.#options.heldLease.lease;
    return lease?.owner === owner && lease.epoch === epoch;
  }

  /** Whether this process has read what another wrote to the journal, and has not judged it yet. */
  get hasUnjudged(): boolean {
    return this.#judged !== this.#distrusts;
  }

  /** From now on nothing begins before what another process wrote to the journal was judged. */
  distrustJournal(): void {
    this.#distrusts += 1;
  }

  /**
   * Whether another sender may have sent the attempt of this number: it journaled one, or the journal cannot be read. Where
   * its disk hangs the ledger tells, so that another process can send the payout: one whose last send is this very attempt,
   * and that has seen each heartbeat of this process, is no other than it was at the begin.
   */
  async mayAnotherHaveSent(attempt: SendAttempt): Promise<boolean> {
    const { journal } = this.#options;
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

  /** @throws RedisUnavailableError */
  async #isLastOf({ token }: SendAttempt): Promise<boolean> {
    const { ledger, heldLease } = this.#options;
    const known = this.#line;
    const view = await ledger.readSender();
    const heartbeat = view.lease?.heartbeat ?? 0;
    const isSame = view.last === token && known.last === token && view.sendCount === known.sendCount;
    return (
      isSame && this.#isHolder(view) && view.ledgerId === heldLease.view.ledgerId && heartbeat >= heldLease.heartbeat()
    );
  }

  /**
   * Judges what another process has written to the journal. A sender of earlier, which was stopped between its begin and
   * its entry, may have done so late; then the ledger knows of all that the journal knows. Else the ledger that says that
   * this process has the lease came back older. The journal is read first: where this process is deposed in between, the
   * ledger tells.
   * @returns why nothing may be sent now, or undefined
   * @throws RedisUnavailableError; Error when the journal cannot be read
   */
  async judgeJournal(): Promise<LedgerConflict | undefined> {
    const { ledger, journal } = this.#options;
    if (!this.hasUnjudged && !(await journal.changedByOthers())) return undefined;
    this.distrustJournal();
    // What is read beside this by another part of the process, from now on, is judged the next time.
    const distrusts = this.#distrusts;
    const read = await this.#readJournal();
    const view = await ledger.readSender();
    const rollback = this.#compare(view, this.#line);
    if (rollback !== undefined) return refuse(rollback);
    // The process that took the lease, as `adopt-ledger` does, is the sender now; this one has not noticed yet.
    if (!this.#isHolder(view)) return { kind: 'lease_lost' };
    if (read instanceof JournalDamagedError) return refuse({ kind: 'journal', reason: read.message });
    const mismatch = await findMismatch(read, view, ledger);
    if (mismatch !== undefined) return refuse(mismatch);
    this.#judged = distrusts;
    return undefined;
  }

  /** @throws Error when it cannot be read at all */
  async #readJournal(): Promise<ReadableJournal | JournalDamagedError> {
    const { journal } = this.#options;
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
