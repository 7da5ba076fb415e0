import { JournalUnavailableError, UnreadableRecordError } from '../../base/errors.js';
import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import {
  describeLostJournal,
  findMismatch,
  findOwnJournals,
  snapshotJournal,
  type LedgerMismatch,
} from '../../journal/find-mismatch.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { Payout } from '../../ledger/payout.js';
import type { KnownJournal, SenderLedger, SenderView } from '../../ledger/sender-ledger.js';
import type { LedgerOutcomeRecorder } from './ledger-outcome-recorder.js';
import type { StatusTracker } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';

export const ADOPT_HINT =
  'nothing is sent: journal and ledger contradict each other. Restore the newest copy of the Redis data if there is one; ' +
  'else `payouts stats` shows the `payouts adopt-ledger` command that ends this';
const JOURNAL_HINT = 'this process sends nothing: its send journal cannot be trusted. See docs/runbooks/journal.md';

const DISK_HINT = 'this process sends nothing: the disk of its send journal fails. See docs/runbooks/disk.md';

export const UNKNOWING_HINT =
  'this process sends nothing: its send journal cannot know what was sent before it began. See docs/runbooks/journal.md';

/** @param bornAt - wall clock, ms */
export function describeUnadopted(bornAt: number): string {
  return `Payouts wait that were signed before the send journal of this host began (${formatTimeUtc(toIsoTime(bornAt))}), so it cannot know whether they were sent. A host whose journal knows may send them. Otherwise compare them with the gateway's records and run \`payouts audit adopt-journal --reason WHY\` on this host.`;
}

const GATEWAY_HINT = 'this process sends nothing: the ledger is of another gateway. See docs/runbooks/other-gateway.md';

export function describeOtherGateway(ledger: string, own: string): string {
  return `This Redis has the payouts of "${ledger}", and this worker pays at "${own}". Correct REDIS_URL, GATEWAY_BASE_URL, GATEWAY_API or GATEWAY_FILE. If it is the same gateway under another name, set PAYOUT_AUDIENCE to the former, or run \`payouts adopt-ledger --gateway --reason WHY\`.`;
}

const STALLED =
  'The disk of the send journal does not answer: nothing is sent until it does. Check the disk or its mount.';

/** A Redis that comes back older, or whose number someone lowers, then needs as many replicas as before. */
export async function noteReplicas({
  journal,
  clock,
  acknowledgedReplicas,
}: Pick<SenderRuntime, 'journal' | 'clock' | 'acknowledgedReplicas'>): Promise<void> {
  const { count, names } = acknowledgedReplicas();
  if (count > journal.knownReplicas) await journal.noteReplicas({ at: clock.wallNow(), count, names });
}

/**
 * Whether payouts wait that were signed before this journal began, so that it must be adopted first.
 * If no other journal may know it, a single such payout is held at its turn and stops no others.
 * Signatures are verified: records that were never signed must not stop an account.
 * @param atTurn - such a payout, already found
 * @throws RedisUnavailableError
 */
export async function cannotKnow(
  {
    senderLedger,
    journal,
    authority,
  }: Pick<SenderRuntime, 'authority'> & {
    readonly senderLedger: Pick<SenderLedger, 'findSignedBefore' | 'readPayout'>;
    readonly journal: Pick<SendJournal, 'bornAt' | 'journalId'>;
  },
  journals: readonly KnownJournal[],
  atTurn?: string,
): Promise<boolean> {
  const enough = journals.some(({ journalId }) => journalId !== journal.journalId) ? 1 : 2;
  let found = atTurn === undefined ? 0 : 1;
  if (found >= enough) return true;
  for (const payoutId of await senderLedger.findSignedBefore(journal.bornAt)) {
    if (payoutId === atTurn) continue;
    const payout = await readReadable(senderLedger, payoutId);
    const permit = payout && authority?.permit(payout);
    if (permit?.kind === 'refused' && permit.hold.reason === 'before_birth') found += 1;
    if (found >= enough) return true;
  }
  return false;
}

/** The sender holds an unreadable record at its turn. */
async function readReadable(ledger: Pick<SenderLedger, 'readPayout'>, payoutId: string): Promise<Payout | undefined> {
  try {
    return await ledger.readPayout(payoutId);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return undefined;
    throw error;
  }
}

/**
 * Compares journal and ledger while another process may hold the lease, and exchanges what only one knows. Reading or
 * writing the ledger throws RedisUnavailableError.
 */
export class JournalAudit {
  readonly #runtime: SenderRuntime;
  readonly #outcomes: LedgerOutcomeRecorder;
  readonly #status: StatusTracker;
  readonly #isSigned: boolean;
  /** The ledger has all the journal's outcomes since this process was last the sender. */
  #hasReplayed = false;

  /** @param isSigned - payouts must be signed: their signatures then show whether they are older than the journal */
  constructor(runtime: SenderRuntime, outcomes: LedgerOutcomeRecorder, status: StatusTracker, isSigned: boolean) {
    this.#runtime = runtime;
    this.#outcomes = outcomes;
    this.#status = status;
    this.#isSigned = isSigned;
  }

  /**
   * Reads the journal before the ledger: the lease's holder may add to both in between, and the ledger leads.
   * If only this process's journal is faulty, another process may still send.
   * @returns why nothing may be sent
   */
  async findMismatch(): Promise<string | undefined> {
    const { journal, senderLedger } = this.#runtime;
    let unread: string | undefined;
    try {
      await journal.reload();
    } catch (error) {
      unread = (error as Error).message;
      if (error instanceof JournalUnavailableError) this.#status.refuse(unread, DISK_HINT, 'disk');
      else this.#status.refuse(unread, JOURNAL_HINT);
      // What was read and written before the disk hung is in memory. If Redis forgets it now, no other process may know
      // it.
      if (!journal.isStalled) return unread;
    }
    const read = snapshotJournal(journal);
    const view = await senderLedger.readSender();
    // Nothing is exchanged with the ledger of another gateway.
    if (view.audience !== undefined && view.audience !== this.#runtime.audience) {
      return this.refuseGateway(view.audience);
    }
    const mismatch = await findMismatch(read, view, senderLedger);
    if (unread !== undefined && mismatch?.kind !== 'ledger') return unread;
    if (mismatch === undefined) {
      await this.#notePeers(view);
      await noteReplicas(this.#runtime);
      await this.#replayOutcomes();
      const unknowing = await this.#findUnknowing(view);
      if (unknowing === undefined) this.#status.endRefusal();
      else this.#status.refuse(unknowing, UNKNOWING_HINT);
      return unknowing;
    }
    this.#status.refuse(mismatch.reason, mismatch.kind === 'ledger' ? ADOPT_HINT : JOURNAL_HINT);
    const isNoted = view.objections.some(({ journalId }) => journalId === journal.journalId);
    if (mismatch.kind === 'ledger' && !isNoted) await this.object(mismatch);
    return mismatch.reason;
  }

  refuseGateway(audience: string): string {
    const reason = describeOtherGateway(audience, this.#runtime.audience);
    this.#status.refuse(reason, GATEWAY_HINT, 'gateway');
    return reason;
  }

  /** Sets a refusal if the journal's disk hangs. @returns whether it does */
  refuseStalled(): boolean {
    const { journal } = this.#runtime;
    if (journal.isStalled) this.#status.refuse(STALLED, DISK_HINT, 'disk');
    return journal.isStalled;
  }

  /** From then on no process begins a send. */
  async object({ kind, reason }: LedgerMismatch): Promise<void> {
    const { journal, journalLocation, senderLedger, clock } = this.#runtime;
    const { journalId, ledger: known } = journal;
    await senderLedger.object({
      journalId,
      kind,
      reason,
      ...journalLocation,
      sends: known?.sends ?? 0,
      at: clock.wallNow(),
    });
  }

  /** This process was the sender: its last outcomes may be in the journal only. */
  replayAgain(): void {
    this.#hasReplayed = false;
  }

  /** Whether the journal has all sends of the account. The ledger may have come back older and lack later senders. */
  hasAllSends({ sendCount, lastJournalId, journals }: SenderView): boolean {
    const { journalId, peers } = this.#runtime.journal;
    if (sendCount > 0 && lastJournalId !== journalId) return false;
    return [...journals, ...peers].every((known) => known.journalId === journalId);
  }

  /** Whether this journal may lack earlier sends and no operator adopted it. Stops this process only. */
  async #findUnknowing(view: SenderView): Promise<string | undefined> {
    const { journal, journalLocation } = this.#runtime;
    const { bornAt } = journal;
    if (bornAt === 0) return undefined;
    if (this.#isSigned) return (await cannotKnow(this.#runtime, view.journals)) ? describeUnadopted(bornAt) : undefined;
    if (journal.ledger !== undefined) return undefined;
    const own = findOwnJournals(view, journalLocation.host);
    if (own.length === 0) return undefined;
    return `Nothing is sent: ${describeLostJournal(own, journalLocation.dir)}. Stop the worker and restore the file, or set SEND_JOURNAL_DIR to its folder. If it is permanently lost, compare what waits with the gateway's records and run \`payouts audit adopt-journal --reason WHY\` on this host.`;
  }

  /** Binds a journal that is new on this host, or whose ledger was adopted elsewhere. */
  async bind(view: SenderView, epoch: number): Promise<void> {
    const { journal, logger } = this.#runtime;
    if (journal.ledger?.ledgerId === view.ledgerId) return;
    if (journal.ledger === undefined && view.sendCount > 0) {
      logger.warn(
        { sendCount: view.sendCount },
        'the send journal of this host is new: it has none of the earlier sends',
      );
    }
    const { ledgerId, sendCount, last } = view;
    await journal.bind({ ledgerId, epoch, sends: sendCount, token: last });
  }

  /** Runs even while another process sends: only this journal may know the outcome of an `unknown` payout. */
  async #replayOutcomes(): Promise<void> {
    if (!this.#hasReplayed) this.#hasReplayed = await this.#outcomes.replayAll();
  }

  /** This journal then knows what else must be read if Redis forgets it. */
  async #notePeers({ journals }: SenderView): Promise<void> {
    const { journal } = this.#runtime;
    const known = [journal.journalId, ...journal.peers.map(({ journalId }) => journalId)];
    const unknown = journals.filter(({ journalId }) => !known.includes(journalId));
    if (unknown.length > 0) await journal.notePeers(unknown);
  }
}
