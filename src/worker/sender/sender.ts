import { followSignals, isAborted } from '../../base/clock.js';
import type { WithdrawConnection, WithdrawRequest } from '../../gateway/gateway.js';
import { BrokenInvariantError, type InvariantCode, INVARIANTS } from '../../base/invariants.js';
import { identify, type SendLine } from '../../journal/journal-line.js';
import { describeJournal } from '../../journal/send-journal.js';
import { formatDuration } from '../../base/format.js';
import { errorCode, type ErrorCode } from '../../base/errors.js';
import { orderIdOf } from '../../ledger/order-id.js';
import type { Payout } from '../../ledger/payout.js';
import type { BeginSend, CountedSpend, SendAttempt } from '../../ledger/sender-ledger.js';
import { OwnOutcomeRecorder, type OnUnrecordable, type StopGrace } from './own-outcome-recorder.js';
import { connectInTime } from './pacer.js';
import { noteReplicas } from './journal-audit.js';
import type { HeldLease } from './lease-keeper.js';
import { LedgerCheck } from './ledger-check.js';
import { LedgerOutcomeRecorder } from './ledger-outcome-recorder.js';
import { OwnSends } from './own-sends.js';
import { reportRefusedBegin, SendRecovery } from './recover-sends.js';
import type { KeptPause } from './kept-pause.js';
import type { GrantedSend } from './send-authority.js';
import { Candidate, type CheckContext, runSendChecks } from './send-checks.js';
import { type SendReport, toNotSent } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';
import { observeReached } from './worker-observer.js';

const IN_ITS_BUFFERS =
  'a gateway that stands still so long may read an older request late, from its own buffers, so compare its records when it answers again';

/** A wait that ended without a connection. */
type EndedWait = Extract<SendReport, { kind: 'stopped' | 'not_sent' }>;

type BegunAttempt = SendAttempt & Pick<BeginSend, 'inFlightMs' | 'spend' | 'decisions'>;

interface BegunSend {
  readonly attempt: SendAttempt;
  readonly request: WithdrawRequest;
  readonly payout: Payout;
  /** When the ledger was asked, monotonic and by wall clock, ms. */
  readonly beganAt: number;
  readonly beganOn: number;
}

/**
 * Sends payouts, one at a time, while its lease is held. Everything that keeps the three promises happens here. The
 * order is: connection ready, begun in the ledger, on disk there, on disk in the journal, slot open. The last checks
 * and the write follow without giving up the event loop.
 */
export class Sender {
  /** The recovery loop runs it too, beside the sends. */
  readonly recovery: SendRecovery;
  readonly #runtime: SenderRuntime;
  readonly #heldLease: HeldLease;
  readonly #pause: KeptPause | undefined;
  readonly #check: LedgerCheck;
  readonly #checks: CheckContext;
  readonly #sends: OwnSends;
  readonly #attempts: OwnOutcomeRecorder;
  /** The payout in hand was there before its slot: the gap before it is the pace of a backlog. */
  #hadToWait = false;

  /** @param pause - undefined if pauses are not kept in the journal */
  constructor(
    runtime: SenderRuntime,
    heldLease: HeldLease,
    stopGrace: StopGrace,
    onUnrecordable: OnUnrecordable,
    pause: KeptPause | undefined,
  ) {
    this.#runtime = runtime;
    this.#heldLease = heldLease;
    this.#pause = pause;
    const { clock, journal, pacer } = runtime;
    this.#sends = new OwnSends(heldLease.view, journal, clock.now());
    const check = (this.#check = new LedgerCheck(runtime, heldLease, this.#sends));
    const outcomes = new LedgerOutcomeRecorder(runtime, pause);
    this.#attempts = new OwnOutcomeRecorder(runtime, check, outcomes, stopGrace, onUnrecordable);
    this.recovery = new SendRecovery(runtime, check, this.#attempts);
    this.#checks = { runtime, heldLease, check, recovery: this.recovery, pause };
    pacer.holdUntil(heldLease.firstSendAt);
    pacer.holdWhile(heldLease.arrivesUntil);
  }

  /**
   * Call it for one payout at a time. Nothing was sent if it throws.
   * @param stop - aborted when no new send may begin; one in progress still gets its response
   * @throws RedisUnavailableError if the ledger cannot be read; Error if the journal cannot be read again
   */
  async send(payoutId: string, stop: AbortSignal): Promise<SendReport> {
    const { clock, pacer, observer } = this.#runtime;
    const { lost } = this.#heldLease;
    const candidate = new Candidate(payoutId);
    const refusal = await runSendChecks(this.#checks, candidate, 'find');
    if (refusal !== undefined) return refusal;

    const [startedAt, hadToWait] = [clock.now(), !pacer.isOpen];
    const turn = followSignals(stop, lost);
    const connection = await this.#connect(turn.signal).finally(turn.end);
    if ('kind' in connection) return lost.aborted ? { kind: 'lease_lost' } : connection;
    observer.pacerWaited(clock.now() - startedAt);
    this.#hadToWait = hadToWait;
    try {
      const begun = await this.#begin(candidate, connection);
      return 'kind' in begun ? begun : await this.#write(begun, connection);
    } finally {
      this.#sends.clearCurrent();
      connection.close();
    }
  }

  async #connect(signal: AbortSignal): Promise<WithdrawConnection | EndedWait> {
    const { gateway, pacer } = this.#runtime;
    const { silentSince } = this.#sends;
    const hindrance = silentSince === undefined ? undefined : await this.#probe(silentSince, signal);
    return hindrance ?? connectInTime(pacer, async (end) => gateway.openConnection(end), signal);
  }

  /**
   * Has the gateway answer a harmless request that was begun after the wait for the last one. If the gateway stood still,
   * it reads that one now, too: hence the interval after the answer.
   * @returns why nothing can be sent yet
   */
  async #probe(silentSince: number, signal: AbortSignal): Promise<EndedWait | undefined> {
    const { gateway, pacer, clock } = this.#runtime;
    await pacer.waitUntilOpen(signal);
    if (isAborted(signal)) return { kind: 'stopped' };
    try {
      await gateway.probe(signal);
    } catch (error) {
      if (isAborted(signal)) return { kind: 'stopped' };
      const { reason, ...report } = toNotSent(error);
      const silentFor = formatDuration(clock.now() - silentSince);
      return { ...report, reason: `${reason}. No response could be trusted for ${silentFor}: ${IN_ITS_BUFFERS}` };
    }
    pacer.afterResponse();
    this.#sends.silentSince = undefined;
    return undefined;
  }

  /** Begins an attempt in the ledger, and writes it to the journal. */
  async #begin(candidate: Candidate, { resendsForMs }: WithdrawConnection): Promise<BegunSend | SendReport> {
    const { clock, journal, makeToken, guardMs, settings } = this.#runtime;
    const { payout } = candidate;
    const inFlightMs = Math.ceil(guardMs + resendsForMs + settings.inFlightMaxMs);
    const attempt: SendAttempt = { payoutId: payout.payoutId, attempt: payout.attempt + 1, token: makeToken() };
    const request = toRequest(payout);
    // Before the ledger is touched: a begin that is put back would raise the attempt number and hide the fault.
    const changed = await runSendChecks(this.#checks, candidate, 'again');
    if (changed !== undefined) return changed;
    const { permit } = candidate;
    // Once begun, the send is as durable as it can be; a later hindrance concerns the next one.
    await noteReplicas(this.#runtime);
    if (this.#sends.hasCurrent) return this.#refuse('ONE_ATTEMPT');
    if (candidate.passed !== 'again') return this.#refuse('BEGIN_AFTER_CHECKS');
    // The heartbeat may notice later; from here on the guard counts.
    if (this.#heldLease.stoodStill()) return { kind: 'lease_lost' };
    const beganAt = clock.now();
    const beganOn = clock.wallNow();
    this.#sends.begin(attempt);
    let hasOthers: boolean;
    try {
      const spend = toCountedSpend({ ...attempt, request, inFlightMs }, permit, beganOn);
      const refusal = await this.#beginInLedger({ ...attempt, inFlightMs, spend, decisions: payout.decisions ?? 0 });
      if (refusal !== undefined) return refusal;
      const { sendCount: sends } = this.#sends.line;
      const { acts: knownActs } = this.#check;
      const at = clock.wallNow();
      const allowed = noteOf(permit);
      const { epoch } = this.#heldLease.lease;
      await journal.append({
        ...attempt,
        epoch,
        sends,
        after: this.#sends.after,
        request,
        inFlightMs,
        ...(knownActs > 0 && { knownActs }),
        at,
        ...allowed,
      });
      this.#sends.journaled(attempt);
      // The recovery, which runs beside this, may have read another process's entries.
      hasOthers = (await journal.changedByOthers()) || this.#check.hasUncompared;
    } catch (error) {
      return await this.#notSent(attempt, (error as Error).message, errorCode(error));
    }
    return hasOthers ? await this.#standBack(attempt) : { attempt, request, payout, beganAt, beganOn };
  }

  /** @returns undefined if the ledger let the attempt begin */
  async #beginInLedger(attempt: BegunAttempt): Promise<SendReport | undefined> {
    const { senderLedger, audience, journal, journalLocation, clock } = this.#runtime;
    const heldLease = this.#heldLease;
    const begun = await senderLedger.beginSend({
      ...attempt,
      ...this.#sends.line,
      acts: journal.acts,
      lease: heldLease.lease,
      audience,
      heartbeat: heldLease.heartbeat(),
      ledgerId: heldLease.view.ledgerId,
      journal: describeJournal(journal, journalLocation, clock.wallNow()),
    });
    if (begun.kind === 'paused') this.#pause?.note(begun.reason);
    if (begun.kind !== 'begun') return await reportRefusedBegin(begun, this.#check, this.recovery);
    this.#sends.begun(attempt, begun.sendCount);
    this.#check.acts = begun.acts;
    if (begun.isIndexed) return undefined;
    await this.#notSent(attempt, INVARIANTS.STATE_IN_INDEX);
    return this.#refuse('STATE_IN_INDEX');
  }

  /** Another process wrote to the journal during the begin: compare its entries before any write. */
  async #standBack(attempt: SendAttempt): Promise<SendReport> {
    this.#check.distrustJournal();
    const report = await this.#notSent(attempt, 'another process has written to the send journal');
    try {
      return (await this.#check.compareJournal()) ?? report;
    } catch {
      return report;
    }
  }

  /** Waits for the slot, writes the request, and records the outcome. */
  async #write(begun: BegunSend, connection: WithdrawConnection): Promise<SendReport> {
    const { pacer, clock, guardMs, observer, logger } = this.#runtime;
    const { attempt, request, payout, beganAt, beganOn } = begun;
    const { lost } = this.#heldLease;
    await pacer.waitUntilOpen(lost);
    // A suspended machine's monotonic clock may stand still. The wall clock may only forbid, never permit.
    const isFresh = (): boolean => clock.now() - beganAt < guardMs && Math.abs(clock.wallNow() - beganOn) < guardMs;
    let writtenAt = NaN;
    let broken: InvariantCode | undefined;
    const mayWrite = (): boolean => {
      writtenAt = clock.now();
      if (!pacer.isOpen || !isFresh() || lost.aborted) return false;
      broken = this.#findBroken(attempt, writtenAt);
      return broken === undefined;
    };
    this.#sends.release(attempt);
    const over = new AbortController();
    void this.#resetOnceOthersMaySend(connection, over.signal);
    const outcome = await connection.withdraw(request, { mayWrite, orderId: orderIdOf(attempt) });
    over.abort();
    if (outcome.kind === 'not_sent') {
      const report = await this.#notSent(attempt, outcome.reason);
      // Without its entry, since another process has changed the journal: that is compared before the next begin.
      const isOthers = broken === 'WRITE_AFTER_ENTRY' && this.#check.hasUncompared;
      return broken === undefined || isOthers ? report : this.#refuse(broken);
    }

    // A gateway that did not ask may have written at any time until now.
    if (Number.isNaN(writtenAt)) writtenAt = clock.now();
    const gapMs = writtenAt - (this.#sends.lastWriteAt ?? NaN);
    this.#sends.lastWriteAt = writtenAt;
    this.#sends.silentSince = outcome.kind === 'unknown' ? (this.#sends.silentSince ?? writtenAt) : undefined;
    if (outcome.kind === 'unknown') pacer.afterNoResponse();
    else pacer.afterResponse();
    this.#pause?.noteOutcome(outcome);
    // Record first: a logger or an observer that throws must not cost the response.
    await this.#attempts.finish(attempt, outcome);
    logger.info({ payoutId: attempt.payoutId, attempt: attempt.attempt, outcome }, 'withdraw sent');
    observer.sent(outcome.kind, outcome.durationMs);
    if (outcome.kind === 'accepted') observeReached(observer, 'sent', payout, clock.wallNow());
    if (!Number.isNaN(gapMs)) observer.sendGap(gapMs, this.#hadToWait);
    return { kind: 'sent', outcome };
  }

  #findBroken({ payoutId, attempt }: SendAttempt, now: number): InvariantCode | undefined {
    const { journal, settings } = this.#runtime;
    if (!journal.knows(payoutId, attempt)) return 'WRITE_AFTER_ENTRY';
    return now - (this.#sends.lastWriteAt ?? -Infinity) < settings.intervalMs ? 'GAP' : undefined;
  }

  /** Nothing of the attempt was written, and nothing will be. */
  #refuse(code: InvariantCode): SendReport {
    const error = new BrokenInvariantError(code);
    this.#runtime.logger.error({ code }, error.message);
    this.#runtime.onBroken(error);
    return { kind: 'not_sent', reason: error.message };
  }

  /** A request that waits in this host's kernel must not arrive while another process sends. */
  async #resetOnceOthersMaySend(connection: WithdrawConnection, over: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    const { lost, heldUntil } = this.#heldLease;
    const turn = followSignals(over, lost);
    while (!isAborted(turn.signal) && clock.now() < heldUntil()) {
      await clock.sleep(heldUntil() - clock.now(), turn.signal);
    }
    turn.end();
    if (!isAborted(over)) connection.reset('this process may no longer be the sender, so it reset its request');
  }

  async #notSent(attempt: SendAttempt, reason: string, code?: ErrorCode): Promise<SendReport> {
    await this.#attempts.revert(attempt, reason);
    return { kind: 'not_sent', reason, code };
  }
}

function noteOf(permit: GrantedSend | undefined): Pick<SendLine, 'signed' | 'judged'> {
  const { signed, counted } = permit ?? {};
  return { ...(signed && { signed }), ...(counted && { judged: counted.judged }) };
}

/** @param now - wall clock, ms */
function toCountedSpend(
  attempt: SendAttempt & Pick<SendLine, 'request' | 'inFlightMs'>,
  permit: GrantedSend | undefined,
  now: number,
): CountedSpend | undefined {
  if (permit?.counted === undefined) return undefined;
  const { judged, keepMs } = permit.counted;
  const usd = judged.usd === undefined ? undefined : BigInt(judged.usd);
  const { payoutId, attempt: number, request, inFlightMs } = attempt;
  const { paymentId, amount, addressTo, symbol } = request;
  const payment = { payoutId, attempt: number, paymentId, amount, addressTo, symbol };
  const about = { ...payment, signer: permit.signed?.key, inFlightMs, usd, coins: judged.coins };
  return { spend: { id: identify(attempt), ...about }, since: now - keepMs };
}

function toRequest({ paymentId, amount, addressTo, symbol }: Payout): WithdrawRequest {
  return { paymentId, amount, addressTo, ...(symbol === undefined ? {} : { symbol }) };
}
