import { followSignals, onAnyClock, type Clock } from '../../base/clock.js';
import type { WithdrawConnection, WithdrawGateway, WithdrawRequest } from '../../gateway/gateway.js';
import { identify, type SendLine } from '../../journal/journal-line.js';
import { describeJournal, JournalDamagedError, type SendJournal } from '../../journal/send-journal.js';
import { RedisUnavailableError } from '../../base/errors.js';
import { findFault, type Hold, type Payout, UnreadableRecordError } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import type { CountedSpend, JournalPlace, SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../base/logger.js';
import { AttemptRecorder, type StopGrace } from './attempt-recorder.js';
import { connectInTime, type Pacer } from './pacer.js';
import { cannotKnow, describeUnadopted } from './journal-audit.js';
import type { HeldLease } from './lease-keeper.js';
import { LedgerCheck, OwnAttempts } from './ledger-check.js';
import { OutcomeRecorder } from './outcome-recorder.js';
import { reportMismatch, reportRefusedBegin, SendRecovery } from './recover-sends.js';
import type { KeptPause } from './kept-pause.js';
import type { GrantedSend, SendAuthority } from './send-authority.js';
import type { SendReport } from './send-report.js';
import type { WorkerObserver } from './worker-observer.js';

export interface SenderOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly heldLease: HeldLease;
  readonly stopGrace: StopGrace;
  /** Undefined if the ledger alone decides. */
  readonly authority?: SendAuthority | undefined;
  /** Present if pauses are kept in the journal. */
  readonly pause?: KeptPause | undefined;
  readonly audience: string;
  readonly journalPlace: JournalPlace;
  /** No other attempt of any process has the same token. */
  readonly makeToken: () => string;
  /** Why Redis may not be trusted with a send now. Called without giving up the event loop. */
  readonly hindrance: () => string | undefined;
  /** The longest time from asking the ledger to begin until the first byte is written. */
  readonly guardMs: number;
  /** How long a written request may be on its way. */
  readonly inFlightMaxMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  readonly onUnrecordable: (reason: string | undefined) => void;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

/**
 * Sends payouts, one at a time, while its lease is held. Everything that keeps the three promises happens here. The
 * order is: connection ready, begun in the ledger, on disk there, on disk in the journal, slot open. The last checks
 * and the write follow without giving up the event loop.
 */
export class Sender {
  /** The recovery loop runs it too, beside the sends. */
  readonly recovery: SendRecovery;
  readonly #options: SenderOptions;
  readonly #ownAttempts = new OwnAttempts();
  readonly #check: LedgerCheck;
  readonly #attempts: AttemptRecorder;
  #after: SendLine['after'];
  #lastWriteAt: number | undefined;
  /** After an untrustworthy response the gateway must answer a harmless request before the next payout. */
  #doubtsGateway: boolean;

  constructor(options: SenderOptions) {
    this.#options = options;
    const { heldLease, journal, pacer, guardMs, inFlightMaxMs } = options;
    const { sendCount, last, lastJournalId, inFlightMs, awaitingAnswer } = heldLease.view;
    this.#doubtsGateway = awaitingAnswer;
    this.#after =
      lastJournalId === journal.journalId && journal.ledger !== undefined
        ? { sends: journal.ledger.sends, token: journal.ledger.token }
        : { sends: sendCount, token: last };
    const doubtMs = onAnyClock(guardMs + Math.max(inFlightMaxMs, inFlightMs));
    const ownAttempts = this.#ownAttempts;
    const check = (this.#check = new LedgerCheck({ ...options, ownAttempts }));
    const outcomes = new OutcomeRecorder({ ...options, doubtMs });
    const attempts = (this.#attempts = new AttemptRecorder({ ...options, ownAttempts, check, outcomes }));
    this.recovery = new SendRecovery({ ...options, ownAttempts, check, attempts, outcomes, doubtMs });
    pacer.holdUntil(heldLease.firstSendAt);
  }

  /**
   * Call it for one payout at a time. Nothing was sent if it throws.
   * @param stop - aborted when no new send may begin; one in progress still gets its response
   * @throws RedisUnavailableError if the ledger cannot be read; Error if the journal cannot be read again
   */
  async send(payoutId: string, stop: AbortSignal): Promise<SendReport> {
    const { heldLease, clock, journal, pacer, observer, authority, pause } = this.#options;
    try {
      await journal.ensureWritable();
    } catch (error) {
      const reason = (error as Error).message;
      return error instanceof JournalDamagedError
        ? reportMismatch({ kind: 'journal', reason })
        : { kind: 'not_sent', reason };
    }
    // Without this, an operator's `payouts audit adopt-journal` would take effect after a restart only.
    const conflict = authority && (await this.#check.judgeJournal());
    if (conflict !== undefined) return conflict;
    if (pause !== undefined) {
      const reason = await pause.find();
      if (reason !== undefined) return { kind: 'paused', reason };
    }
    const payout = await this.#readQueued(payoutId);
    if (typeof payout === 'string' || payout === undefined) return { kind: 'skipped', state: payout };
    if (payout instanceof UnreadableRecordError) return await this.#holdForGood(payoutId, payout.message);
    // The gateway would fail each time, and the payouts behind would wait for good.
    const fault = findFault(payout);
    if (fault !== undefined) return await this.#holdForGood(payoutId, `It can never be sent: ${fault}.`);
    if (payout.notBefore !== undefined && Date.parse(payout.notBefore) > clock.wallNow()) {
      return { kind: 'early', notBefore: Date.parse(payout.notBefore) };
    }
    if (journal.knows(payoutId, payout.attempt + 1)) {
      return reportMismatch({
        kind: 'ledger',
        reason: `The send journal says that payout ${payoutId} was sent, the ledger says that it was not.`,
      });
    }
    const permit = authority?.permit(payout);
    if (permit?.kind === 'refused') return await this.#hold(payoutId, payout.attempt, permit.hold);

    const startedAt = clock.now();
    const turn = followSignals(stop, heldLease.lost);
    const open = async (signal: AbortSignal): Promise<WithdrawConnection> => this.#openConnection(signal);
    const connection = await connectInTime(pacer, { openConnection: open }, turn.signal).finally(turn.end);
    if ('kind' in connection) return heldLease.lost.aborted ? { kind: 'lease_lost' } : connection;
    observer.pacerWaited(clock.now() - startedAt);
    try {
      return await this.#beginAndWrite(payout, connection);
    } finally {
      this.#ownAttempts.clearCurrent();
      connection.close();
    }
  }

  async #openConnection(signal: AbortSignal): Promise<WithdrawConnection> {
    const { gateway } = this.#options;
    if (this.#doubtsGateway) await gateway.probe(signal);
    this.#doubtsGateway = false;
    return gateway.openConnection(signal);
  }

  /** @returns a queued payout, or another's state; the error if the record can never be read */
  async #readQueued(payoutId: string): Promise<Payout | PayoutState | UnreadableRecordError | undefined> {
    const payout = await this.#read(payoutId);
    if (payout instanceof UnreadableRecordError) return payout;
    if (payout?.state !== 'sending') return payout?.state === 'queued' ? payout : payout?.state;
    // The begin's reply may be lost; this process knows that it sent nothing.
    await this.recovery.resolveLeftovers();
    const again = await this.#read(payoutId);
    return again instanceof UnreadableRecordError || again?.state === 'queued' ? again : again?.state;
  }

  async #read(payoutId: string): Promise<Payout | UnreadableRecordError | undefined> {
    try {
      return await this.#options.ledger.readPayout(payoutId);
    } catch (error) {
      if (error instanceof UnreadableRecordError) return error;
      throw error;
    }
  }

  async #beginAndWrite(payout: Payout, connection: WithdrawConnection): Promise<SendReport> {
    const { clock, journal, heldLease, pacer, makeToken, authority } = this.#options;
    const attempt: SendAttempt = { payoutId: payout.payoutId, attempt: payout.attempt + 1, token: makeToken() };
    const request = toRequest(payout);
    // Check before the ledger is touched: a begin that is put back would raise the attempt number and hide the fault.
    const conflict = await this.#check.judgeJournal();
    if (conflict !== undefined) return conflict;
    const { pause } = this.#options;
    if (pause?.reason !== undefined) return { kind: 'paused', reason: pause.reason };
    // Time has passed, and the journal may have been read again.
    const permit = authority?.permit(payout);
    if (permit?.kind === 'refused') return await this.#hold(payout.payoutId, payout.attempt, permit.hold);

    // Once begun, the send is as durable as it can be; a later hindrance concerns the next one.
    const hindrance = this.#options.hindrance();
    if (hindrance !== undefined) return { kind: 'not_sent', reason: hindrance };
    const beganAt = clock.now();
    const beganOn = clock.wallNow();
    this.#ownAttempts.trackBegin(attempt);
    let hasOthers: boolean;
    try {
      const spend = toCountedSpend(attempt, request, permit, beganOn);
      const begun = await this.#begin(attempt, spend, payout.decisions ?? 0);
      if (begun !== undefined) return begun;
      const { sendCount: sends } = this.#check.line;
      const at = clock.wallNow();
      const allowed = noteOf(permit);
      const { epoch } = heldLease.lease;
      await journal.append({ ...attempt, epoch, sends, after: this.#after, request, at, ...allowed });
      this.#after = { sends, token: attempt.token };
      // The recovery, which runs beside this, may have read another process's entries.
      hasOthers = (await journal.changedByOthers()) || this.#check.hasUnjudged;
    } catch (error) {
      return await this.#notSent(attempt, (error as Error).message);
    }
    if (hasOthers) return await this.#standBack(attempt);
    await pacer.waitUntilOpen(heldLease.lost);
    // A suspended machine's monotonic clock may stand still. The wall clock may only forbid, never permit.
    const isFresh = (): boolean =>
      clock.now() - beganAt < this.#options.guardMs && Math.abs(clock.wallNow() - beganOn) < this.#options.guardMs;
    const mayWrite = (): boolean => pacer.isOpen && isFresh() && !heldLease.lost.aborted;
    return await this.#write(attempt, request, connection, mayWrite);
  }

  /** @returns undefined if the ledger let the attempt begin */
  async #begin(
    attempt: SendAttempt,
    spend: CountedSpend | undefined,
    decisions: number,
  ): Promise<SendReport | undefined> {
    const { ledger, audience, heldLease, journal, journalPlace, inFlightMaxMs, clock } = this.#options;
    const begun = await ledger.beginSend({
      ...attempt,
      ...this.#check.line,
      lease: heldLease.lease,
      audience,
      heartbeat: heldLease.heartbeat(),
      ledgerId: heldLease.view.ledgerId,
      journal: describeJournal(journal, journalPlace, clock.wallNow()),
      inFlightMs: inFlightMaxMs,
      spend,
      decisions,
    });
    if (begun.kind === 'paused') this.#options.pause?.note(begun.reason);
    if (begun.kind !== 'begun') return await reportRefusedBegin(begun, { check: this.#check, recovery: this.recovery });
    this.#ownAttempts.confirmBegin(attempt);
    this.#check.noteBegun({ sendCount: begun.sendCount, last: attempt.token });
    return undefined;
  }

  /** The queue goes on. @param attempt - undefined for any */
  async #hold(payoutId: string, attempt: number | undefined, hold: Hold): Promise<SendReport> {
    const { ledger, journal, observer, logger, authority } = this.#options;
    const { journals } = this.#options.heldLease.view;
    if (hold.reason === 'before_birth' && (await cannotKnow(this.#options, journals, payoutId))) {
      return { kind: 'unadopted', reason: describeUnadopted(journal.bornAt) };
    }
    try {
      await authority?.keepRejections?.();
    } catch (error) {
      return { kind: 'not_sent', reason: (error as Error).message };
    }
    if (!(await ledger.holdPayout(payoutId, attempt, hold))) return { kind: 'not_sent', reason: 'the payout changed' };
    const { kind, reason, message, isTampering } = hold;
    if (kind === 'policy') {
      logger.info({ payoutId, rule: hold.rule, reason: message }, 'payout held by the policy');
      return { kind: 'skipped', state: 'held' };
    }
    if (isTampering) logger.error({ payoutId, reason: message }, 'payout held: it was tampered with');
    else logger.warn({ payoutId, reason: message }, 'payout held');
    observer.signatureRefused(reason, isTampering);
    return { kind: 'skipped', state: 'held' };
  }

  /** No `enqueue` accepts such a payout, so someone has altered the record. */
  async #holdForGood(payoutId: string, message: string): Promise<SendReport> {
    const { observer, logger } = this.#options;
    const hold: Hold = { kind: 'signature', reason: 'fields', message, isTampering: true };
    try {
      const report = await this.#hold(payoutId, undefined, hold);
      // An unreadable record may be in any state; unless it is queued, its job has nothing to do.
      return report.kind === 'not_sent' ? { kind: 'skipped', state: undefined } : report;
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw error;
      // The script can never read it either. Without a job it blocks no other payout.
      const { message: cause } = error as Error;
      logger.error({ payoutId, reason: message, error: cause }, 'payout skipped: its record in Redis is no payout');
      observer.signatureRefused('fields', true);
      return { kind: 'skipped', state: undefined };
    }
  }

  /** Another process wrote to the journal during the begin: compare its entries before any write. */
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
    this.#ownAttempts.release(attempt);
    const outcome = await connection.withdraw(request, { mayWrite });
    if (outcome.kind === 'not_sent') return await this.#notSent(attempt, outcome.reason);

    this.#doubtsGateway = outcome.kind === 'unknown';
    if (outcome.kind === 'unknown') pacer.afterNoResponse();
    else pacer.afterResponse();
    this.#options.pause?.noteOutcome(outcome);
    // Record first: a logger or an observer that throws must not cost the response.
    await this.#attempts.finish(attempt, outcome);
    logger.info({ payoutId: attempt.payoutId, attempt: attempt.attempt, outcome }, 'withdraw sent');
    observer.sent(outcome.kind, outcome.durationMs);
    if (this.#lastWriteAt !== undefined) observer.sendGap(writtenAt - this.#lastWriteAt);
    this.#lastWriteAt = writtenAt;
    return { kind: 'sent', outcome };
  }

  async #notSent(attempt: SendAttempt, reason: string): Promise<SendReport> {
    await this.#attempts.revert(attempt, reason);
    return { kind: 'not_sent', reason };
  }
}

function noteOf(permit: GrantedSend | undefined): Pick<SendLine, 'signed' | 'judged'> {
  const { signed, counted } = permit ?? {};
  return { ...(signed && { signed }), ...(counted && { judged: counted.judged }) };
}

/** @param now - wall clock, ms */
function toCountedSpend(
  attempt: SendAttempt,
  { paymentId, amount, addressTo }: WithdrawRequest,
  permit: GrantedSend | undefined,
  now: number,
): CountedSpend | undefined {
  if (permit?.counted === undefined) return undefined;
  const { judged, keepMs } = permit.counted;
  const usd = judged.usd === undefined ? undefined : BigInt(judged.usd);
  const { payoutId, attempt: number } = attempt;
  const about = { payoutId, attempt: number, paymentId, amount, addressTo, signer: permit.signed?.key, usd };
  return { spend: { id: identify(attempt), ...about }, since: now - keepMs };
}

function toRequest({ paymentId, amount, addressTo, symbol }: Payout): WithdrawRequest {
  return { paymentId, amount, addressTo, ...(symbol === undefined ? {} : { symbol }) };
}
