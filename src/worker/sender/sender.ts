import { isAborted, onAnyClock, type Clock } from '../../clock.js';
import type { WithdrawConnection, WithdrawGateway, WithdrawRequest } from '../../gateway/withdraw-gateway.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { JournaledSend } from '../../journal/journal-line.js';
import { describeJournal, JournalDamagedError, type SendJournal } from '../../journal/send-journal.js';
import type { Payout } from '../../ledger/payout.js';
import type { ScriptRejection } from '../../ledger/script-rejection.js';
import type { PayoutState } from '../../ledger/states.js';
import type { JournalPlace, SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../logger.js';
import { AttemptRecorder } from './attempt-recorder.js';
import type { HeldLease } from './lease-keeper.js';
import { LedgerCheck } from './ledger-check.js';
import type { Pacer } from './pacer.js';
import type { SendReport } from './send-report.js';
import type { StopGrace } from './stop-grace.js';
import type { WorkerObserver } from './worker-observer.js';

export interface SenderOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly held: HeldLease;
  readonly stopGrace: StopGrace;
  /** Where the journal is, for operators. */
  readonly journalPlace: JournalPlace;
  /** Makes the token of an attempt, which no other attempt of any process ever has. */
  readonly makeToken: () => string;
  /** Why Redis may not be trusted with a send now, or undefined; asked without giving up the event loop. */
  readonly hindrance: () => string | undefined;
  /** The longest time from asking the ledger to begin until the first byte is written, in ms. */
  readonly guardMs: number;
  /** For how long a written request may be on its way, in ms. */
  readonly inFlightMaxMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Told why an outcome cannot be recorded although Redis responds; with undefined once it could be. */
  readonly onUnrecordable: (reason: string | undefined) => void;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

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
  readonly #book: AttemptRecorder;
  readonly #check: LedgerCheck;
  /** The last send that somebody witnesses, see `JournaledSend.after`. */
  #after: JournaledSend['after'];
  #lastWriteAt: number | undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
    const { held, journal, pacer } = options;
    const { sendCount, last, lastJournalId, inFlightMs } = held.view;
    this.#after =
      lastJournalId === journal.journalId && journal.ledger !== undefined
        ? { sends: journal.ledger.sends, token: journal.ledger.token }
        : { sends: sendCount, token: last };
    this.#book = new AttemptRecorder({
      ...options,
      doubtMs: onAnyClock(options.guardMs + Math.max(options.inFlightMaxMs, inFlightMs)),
      catchUpWithJournal: async () => this.#check.catchUpWithJournal(),
    });
    this.#check = new LedgerCheck({ ...options, isUnwritten: (token) => this.#book.isUnwritten(token) });
    pacer.holdUntil(held.firstSendAt);
  }

  /**
   * Sends one payout if the ledger says that it is to be sent. Call it for one payout at a time.
   * @param stop - aborted when no new send may begin; a send under way still gets its response
   * @throws RedisUnavailableError when the ledger could not be asked, Error when the journal could not be read again;
   * nothing was sent
   */
  async send(payoutId: string, stop: AbortSignal): Promise<SendReport> {
    const { held, clock, journal, observer } = this.#options;
    const either = AbortSignal.any([stop, held.lost]);
    try {
      await journal.ensureWritable();
    } catch (error) {
      const reason = (error as Error).message;
      return error instanceof JournalDamagedError ? refuse({ kind: 'journal', reason }) : { kind: 'not_sent', reason };
    }
    const payout = await this.#readQueued(payoutId);
    if (typeof payout === 'string' || payout === undefined) return { kind: 'skipped', state: payout };
    if (payout.notBefore !== undefined && Date.parse(payout.notBefore) > clock.wallNow()) {
      return { kind: 'early', notBefore: Date.parse(payout.notBefore) };
    }
    if (journal.knows(payoutId, payout.attempt + 1)) {
      return refuse({
        kind: 'ledger',
        reason: `The send journal says that payout ${payoutId} was sent, the ledger says that it was not.`,
      });
    }

    const startedAt = clock.now();
    const connection = await this.#connectInTime(either);
    if ('kind' in connection) return held.lost.aborted ? { kind: 'lease_lost' } : connection;
    observer.pacerWaited(clock.now() - startedAt);
    try {
      return await this.#beginAndWrite(payout, connection);
    } finally {
      this.#book.ended();
      connection.close();
    }
  }

  /**
   * Compares the ledger with what this process knows, also while there is nothing to send, and tells it the last
   * outcome again in case it came back without it.
   * @returns why nothing may be sent from this ledger any more, or undefined
   * @throws RedisUnavailableError
   */
  async checkLedger(): Promise<LedgerMismatch | undefined> {
    const loss = await this.#check.findLoss();
    if (loss === undefined) await this.#book.confirmLast();
    return loss;
  }

  /**
   * Clears attempts that the ledger has as under way although none of this process is.
   * @throws RedisUnavailableError
   */
  async resolveLeftovers(): Promise<void> {
    await this.#book.resolveLeftovers();
  }

  /** @returns the payout when it is queued, else its state */
  async #readQueued(payoutId: string): Promise<Payout | PayoutState | undefined> {
    const payout = await this.#options.ledger.readPayout(payoutId);
    if (payout?.state !== 'sending') return payout?.state === 'queued' ? payout : payout?.state;
    // A begin whose reply was lost left it there: this process knows that it did not send it.
    await this.#book.resolveLeftovers();
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
    const { clock, journal, held, pacer, makeToken } = this.#options;
    const attempt: SendAttempt = { payoutId: payout.payoutId, attempt: payout.attempt + 1, token: makeToken() };
    const request = toRequest(payout);
    // Before the ledger is touched: a begin that is put back would count the payout's attempts up and hide the fault.
    const objection = await this.#check.judgeJournal();
    if (objection !== undefined) return objection;

    // Once begun it is as durable as it can be: what changes after that is a matter for the next send.
    const doubt = this.#options.hindrance();
    if (doubt !== undefined) return { kind: 'not_sent', reason: doubt };
    const beganAt = clock.now();
    const beganOn = clock.wallNow();
    this.#book.mayBegin(attempt);
    let hasOthers: boolean;
    try {
      const begun = await this.#begin(attempt);
      if (begun !== undefined) return begun;
      const { sendCount } = this.#check.line;
      const at = clock.wallNow();
      await journal.append({ ...attempt, epoch: held.lease.epoch, sends: sendCount, after: this.#after, request, at });
      this.#after = { sends: sendCount, token: attempt.token };
      hasOthers = await journal.changedByOthers();
    } catch (error) {
      return await this.#notSent(attempt, (error as Error).message);
    }
    if (hasOthers) return await this.#standBack(attempt);
    await pacer.waitUntilOpen(held.lost);
    // A suspended machine's monotonic clock may stand still; its wall clock then forbids, as it may, and permits nothing.
    const isFresh = (): boolean =>
      clock.now() - beganAt < this.#options.guardMs && Math.abs(clock.wallNow() - beganOn) < this.#options.guardMs;
    const mayWrite = (): boolean => pacer.isOpen && isFresh() && !held.lost.aborted;
    return await this.#write(attempt, request, connection, mayWrite);
  }

  /** @returns undefined when the ledger let the attempt begin */
  async #begin(attempt: SendAttempt): Promise<SendReport | undefined> {
    const { ledger, held, journal, journalPlace, inFlightMaxMs, clock } = this.#options;
    const begun = await ledger.beginSend({
      ...attempt,
      ...this.#check.line,
      lease: held.lease,
      heartbeat: held.heartbeat(),
      ledgerId: held.view.ledgerId,
      journal: describeJournal(journal, journalPlace, clock.wallNow()),
      inFlightMs: inFlightMaxMs,
    });
    if (begun.kind !== 'begun') return await this.#refused(begun);
    this.#book.noteBegun(attempt);
    this.#check.noteBegun({ sendCount: begun.sendCount, last: attempt.token });
    return undefined;
  }

  /** Another process wrote to the journal while this one began: the request is not written before that was judged. */
  async #standBack(attempt: SendAttempt): Promise<SendReport> {
    this.#check.distrustJournal();
    const report = await this.#notSent(attempt, 'another process has written to the send journal');
    try {
      return (await this.#check.judgeJournal()) ?? report;
    } catch {
      return report;
    }
  }

  async #write(
    attempt: SendAttempt,
    request: WithdrawRequest,
    connection: WithdrawConnection,
    mayWrite: () => boolean,
  ): Promise<SendReport> {
    const { pacer, clock, observer, logger } = this.#options;
    const writtenAt = clock.now();
    this.#book.noteWritten(attempt);
    const outcome = await connection.withdraw(request, { mayWrite });
    if (outcome.kind === 'not_sent') return await this.#notSent(attempt, outcome.reason);

    if (outcome.kind === 'unknown') pacer.unanswered();
    else pacer.answered();
    // Recorded before anybody else hears of it: a logger or an observer that throws must not cost the response.
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
  async #refused(refusal: ScriptRejection): Promise<SendReport> {
    switch (refusal.kind) {
      case 'lease_lost':
        return { kind: 'lease_lost' };
      case 'paused':
        return { kind: 'paused', reason: refusal.reason };
      case 'objected':
        return { kind: 'objected', reason: refusal.reason };
      case 'other_ledger':
        return refuse(this.#check.otherLedger);
      case 'sends_differ': {
        const mismatch = this.#check.explainDifference(refusal);
        return mismatch === undefined
          ? { kind: 'not_sent', reason: 'send counter was behind; will retry' }
          : refuse(mismatch);
      }
      case 'others_sending':
        await this.#book.resolveLeftovers();
        return { kind: 'not_sent', reason: `payouts were left in sending: ${refusal.payoutIds.join(', ')}` };
      case 'wrong_state':
        // Changed between the look and the begin; the next look tells.
        return refusal.state === 'queued'
          ? { kind: 'not_sent', reason: 'the payout changed' }
          : { kind: 'skipped', state: refusal.state };
      case 'not_found':
      case 'txhash_taken':
      case 'in_doubt':
      case 'sent_since':
      case 'paid_late':
        throw new Error(`begin-send refused with ${refusal.kind}, which it never should`);
    }
  }
}

function refuse(mismatch: LedgerMismatch): SendReport {
  return { kind: 'ledger_refused', mismatch };
}

function toRequest({ paymentId, amount, addressTo, symbol }: Payout): WithdrawRequest {
  return { paymentId, amount, addressTo, ...(symbol === undefined ? {} : { symbol }) };
}
