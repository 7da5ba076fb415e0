import { isAborted, type Clock } from '../clock.js';
import type {
  WithdrawConnection,
  WithdrawGateway,
  WithdrawOutcome,
  WithdrawRequest,
} from '../gateway/withdraw-gateway.js';
import type { Payout } from '../ledger/payout.js';
import type { Refusal } from '../ledger/refusal.js';
import type { PayoutState } from '../ledger/states.js';
import type { SendAttempt, SenderLedger, SenderView } from '../ledger/sender-ledger.js';
import type { Logger } from '../logger.js';
import { AttemptBook } from './attempt-book.js';
import type { HeldLease } from './lease-keeper.js';
import type { Pacer } from './pacer.js';
import { findDisagreement, type SendJournal } from './send-journal.js';
import type { WorkerObserver } from './worker-observer.js';

export interface SenderOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly held: HeldLease;
  /** Aborted when the process ends and Redis can be waited for no longer. */
  readonly giveUp: AbortSignal;
  /** The longest time from asking the ledger to begin until the first byte is written, in ms. */
  readonly guardMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

/** What came of looking at one payout. */
export type SendReport =
  /** It was sent, and this is what is known. */
  | { readonly kind: 'sent'; readonly outcome: Exclude<WithdrawOutcome, { kind: 'not_sent' }> }
  /** Nothing was sent and it is still `queued`: try again later. */
  | { readonly kind: 'not_sent'; readonly reason: string }
  /** It is not `queued` any more; there is nothing to do. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined }
  /** Its `notBefore` (wall clock, ms) has not come, although its job has. */
  | { readonly kind: 'early'; readonly notBefore: number }
  | { readonly kind: 'paused'; readonly reason: string }
  /** Another process is the sender now. */
  | { readonly kind: 'lease_lost' }
  /** The signal was aborted before the send began. */
  | { readonly kind: 'stopped' }
  /** The ledger is not the one that the journal knows: a person must decide. */
  | { readonly kind: 'ledger_refused'; readonly reason: string };

const OTHER_LEDGER = 'Redis was flushed or exchanged while this process was the sender.';

const OTHERS_SENT: SendReport = {
  kind: 'ledger_refused',
  reason: 'Another process has written to the send journal while this one took itself for the sender.',
};

/** A connection is made ready this long before its slot, so that it is ready in time and not idle for long. */
const CONNECT_LEAD_MS = 1_000;

/** The ledger and the journal are written this long before the slot opens, so that their time does not slow the pace. */
const BEGIN_LEAD_MS = 30;

/**
 * Sends payouts, one at a time, for as long as its lease is held. Everything that keeps the three promises happens
 * here, in this order: connection ready, begun in the ledger, on disk there, on disk in the journal, slot open, and then,
 * without giving up the event loop, the last checks and the write.
 */
export class Sender {
  readonly #options: SenderOptions;
  readonly #book: AttemptBook;
  /** The number of sends that the ledger must have seen; a smaller one there means that it forgot. */
  #sends: number;
  #lastWriteAt: number | undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#sends = options.held.view.sends;
    this.#book = new AttemptBook(options);
    options.pacer.holdUntil(options.held.firstSendAt);
  }

  /**
   * Sends one payout if the ledger says that it is to be sent. Call it for one payout at a time.
   * @param stop - aborted when no new send may begin; a send under way still gets its answer
   * @throws RedisUnavailableError when the ledger could not be asked, Error when the journal could not be read again;
   * nothing was sent
   */
  async send(payoutId: string, stop: AbortSignal): Promise<SendReport> {
    const { held, clock, observer } = this.#options;
    const either = AbortSignal.any([stop, held.lost]);
    try {
      await this.#options.journal.ensureWritable();
    } catch (error) {
      return { kind: 'not_sent', reason: (error as Error).message };
    }
    const payout = await this.#readQueued(payoutId);
    if (typeof payout === 'string' || payout === undefined) return { kind: 'skipped', state: payout };
    if (payout.notBefore !== undefined && Date.parse(payout.notBefore) > clock.wallNow()) {
      return { kind: 'early', notBefore: Date.parse(payout.notBefore) };
    }
    if (this.#options.journal.knows(payoutId, payout.attempt + 1)) {
      return {
        kind: 'ledger_refused',
        reason: `The journal says that payout ${payoutId} was sent, the ledger says that it was not.`,
      };
    }

    const startedAt = clock.now();
    const connection = await this.#connectInTime(either);
    if ('kind' in connection) return held.lost.aborted ? { kind: 'lease_lost' } : connection;
    observer.pacerWaited(clock.now() - startedAt);
    try {
      return await this.#beginAndWrite(payout, connection);
    } finally {
      connection.close();
    }
  }

  /**
   * Holds the ledger against what this process knows, also while there is nothing to send, and tells it the last
   * outcome again in case it came back without it.
   * @returns why nothing may be sent from this ledger any more, or undefined
   * @throws RedisUnavailableError
   */
  async checkLedger(): Promise<string | undefined> {
    const known = this.#sends;
    const loss = this.#findLoss(await this.#options.ledger.readSender(), known);
    if (loss === undefined) await this.#book.confirmLast();
    return loss;
  }

  #findLoss({ ledgerId, sends }: SenderView, known: number): string | undefined {
    if (ledgerId !== this.#options.held.view.ledgerId) return OTHER_LEDGER;
    return sends < known ? describeLoss(sends, known) : undefined;
  }

  /** @returns the payout when it is queued, else its state */
  async #readQueued(payoutId: string): Promise<Payout | PayoutState | undefined> {
    const payout = await this.#options.ledger.readPayout(payoutId);
    if (payout?.state !== 'sending') return payout?.state === 'queued' ? payout : payout?.state;
    // A begin whose reply was lost left it there: this process knows that it did not send it.
    await this.#book.settleLeftovers([payoutId]);
    const again = await this.#options.ledger.readPayout(payoutId);
    return again?.state === 'queued' ? again : again?.state;
  }

  /** Waits until the slot is about to open, with a fresh connection at hand. @returns the connection, usable */
  async #connectInTime(
    stop: AbortSignal,
  ): Promise<WithdrawConnection | Extract<SendReport, { kind: 'stopped' | 'not_sent' }>> {
    const { pacer, gateway } = this.#options;
    for (;;) {
      await pacer.waitUntilOpen(stop, CONNECT_LEAD_MS);
      if (isAborted(stop)) return { kind: 'stopped' };
      let connection: WithdrawConnection;
      try {
        connection = await gateway.openConnection(stop);
      } catch (error) {
        return isAborted(stop) ? { kind: 'stopped' } : { kind: 'not_sent', reason: (error as Error).message };
      }
      const hadToWait = !pacer.isOpen;
      await pacer.waitUntilOpen(stop, BEGIN_LEAD_MS);
      if (!isAborted(stop) && connection.usable) return connection;
      connection.close();
      if (isAborted(stop)) return { kind: 'stopped' };
      // A connection that ended while it waited is simply made again; one that ends at once is the gateway's trouble.
      if (!hadToWait) return { kind: 'not_sent', reason: 'the gateway ended the connection before it was used' };
    }
  }

  async #beginAndWrite(payout: Payout, connection: WithdrawConnection): Promise<SendReport> {
    const { clock, ledger, journal, held, pacer } = this.#options;
    const attempt: SendAttempt = { payoutId: payout.payoutId, attempt: payout.attempt + 1, epoch: held.lease.epoch };
    const request = toRequest(payout);
    // Before the ledger is touched: a begin that is put back would count the payout's attempts up and hide the fault.
    if (await journal.changedByOthers()) {
      const objection = await this.#judgeAddition();
      if (objection !== undefined) return objection;
    }

    const beganAt = clock.now();
    const beganOn = clock.wallNow();
    this.#book.mayHaveBegun(attempt);
    let othersWrote: boolean;
    try {
      const begun = await ledger.beginSend({
        ...attempt,
        lease: held.lease,
        ledgerId: held.view.ledgerId,
        sends: this.#sends,
      });
      if (begun.kind !== 'begun') return await this.#refused(begun);
      this.#sends = begun.sends;
      await journal.append({ ...attempt, sends: begun.sends, request, at: clock.wallNow() });
      othersWrote = await journal.changedByOthers();
    } catch (error) {
      return await this.#notSent(attempt, (error as Error).message);
    }
    if (othersWrote) return await this.#leaveInSending(attempt);
    await pacer.waitUntilOpen(held.lost);
    // A suspended machine's monotonic clock may stand still; its wall clock then forbids, as it may, and permits nothing.
    const isFresh = (): boolean =>
      clock.now() - beganAt < this.#options.guardMs && Math.abs(clock.wallNow() - beganOn) < this.#options.guardMs;
    const mayWrite = (): boolean => pacer.isOpen && isFresh() && !held.lost.aborted;
    return await this.#write(attempt, request, connection, mayWrite);
  }

  /**
   * Another process has written to the journal. A sender of earlier, which was stopped between its begin and its entry, may
   * have done so late; then the ledger knows of all that the journal knows. Else the ledger that says that this process has
   * the lease came back older.
   * @returns why nothing may be sent now, or undefined
   */
  async #judgeAddition(): Promise<SendReport | undefined> {
    const { clock, ledger, journal } = this.#options;
    const view = await ledger.readSender();
    const objection = this.#judgeHolder(view);
    if (objection !== undefined) return objection;
    await journal.reload();
    const reason = await findDisagreement(journal, view, ledger, clock.wallNow());
    return reason === undefined ? undefined : { kind: 'ledger_refused', reason };
  }

  /**
   * The other may have sent it, and the ledger cannot tell: this begin made it know of the attempt. Therefore it is not put
   * back, also not later; the next holder of the lease turns it into `unknown`.
   */
  async #leaveInSending(attempt: SendAttempt): Promise<SendReport> {
    this.#book.disown(attempt);
    try {
      return this.#judgeHolder(await this.#options.ledger.readSender()) ?? OTHERS_SENT;
    } catch {
      return OTHERS_SENT;
    }
  }

  /** Whoever took the lease, as `adopt-ledger` does, is the sender now; this process has only not heard of it yet. */
  #judgeHolder(view: SenderView): SendReport | undefined {
    const loss = this.#findLoss(view, this.#sends);
    if (loss !== undefined) return { kind: 'ledger_refused', reason: loss };
    const { owner, epoch } = this.#options.held.lease;
    return view.lease?.owner === owner && view.lease.epoch === epoch ? undefined : { kind: 'lease_lost' };
  }

  async #write(
    attempt: SendAttempt,
    request: WithdrawRequest,
    connection: WithdrawConnection,
    mayWrite: () => boolean,
  ): Promise<SendReport> {
    const { pacer, clock, observer, logger } = this.#options;
    const writtenAt = clock.now();
    this.#book.disown(attempt);
    const outcome = await connection.withdraw(request, { mayWrite });
    if (outcome.kind === 'not_sent') return await this.#notSent(attempt, outcome.reason);

    if (outcome.kind === 'unknown') pacer.unanswered();
    else pacer.answered();
    // Recorded before anybody else hears of it: a logger or an observer that throws must not cost the answer.
    await this.#book.finish(attempt, outcome);
    logger.info({ payoutId: attempt.payoutId, attempt: attempt.attempt, outcome }, 'withdraw sent');
    observer.sent(outcome.kind, outcome.durationMs);
    if (this.#lastWriteAt !== undefined) observer.sendGap(writtenAt - this.#lastWriteAt);
    this.#lastWriteAt = writtenAt;
    return { kind: 'sent', outcome };
  }

  async #notSent(attempt: SendAttempt, reason: string): Promise<SendReport> {
    await this.#book.revert(attempt, reason);
    return { kind: 'not_sent', reason };
  }

  /** The ledger did not let the attempt begin. */
  async #refused(refusal: Refusal): Promise<SendReport> {
    switch (refusal.kind) {
      case 'lease_lost':
        return { kind: 'lease_lost' };
      case 'paused':
        return { kind: 'paused', reason: refusal.reason };
      case 'other_ledger':
        return { kind: 'ledger_refused', reason: OTHER_LEDGER };
      case 'sends_differ': {
        const forgot = refusal.sends < this.#sends;
        if (forgot) return { kind: 'ledger_refused', reason: describeLoss(refusal.sends, this.#sends) };
        // A begin whose reply was lost counted after all.
        this.#sends = refusal.sends;
        return { kind: 'not_sent', reason: 'an earlier begin was counted late' };
      }
      case 'others_sending':
        await this.#book.settleLeftovers(refusal.payoutIds);
        return { kind: 'not_sent', reason: `payouts were left in sending: ${refusal.payoutIds.join(', ')}` };
      case 'wrong_state':
        // Changed between the look and the begin; the next look tells.
        return refusal.state === 'queued'
          ? { kind: 'not_sent', reason: 'the payout changed' }
          : { kind: 'skipped', state: refusal.state };
      case 'not_found':
      case 'txhash_taken':
        throw new Error(`begin-send refused with ${refusal.kind}, which it never should`);
    }
  }
}

function describeLoss(sends: number, known: number): string {
  return `Redis came back older than it was: it knows ${sends} sends, this process ${known}.`;
}

function toRequest({ paymentId, amount, addressTo, symbol }: Payout): WithdrawRequest {
  return { paymentId, amount, addressTo, ...(symbol === undefined ? {} : { symbol }) };
}
