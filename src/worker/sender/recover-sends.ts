import { followSignals, isAborted, untilAborted } from '../../base/clock.js';
import { UNKNOWN_IN_FLIGHT_MS } from '../../base/settings.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { identify } from '../../journal/journal-line.js';
import type { RejectionOf, SendAttempt } from '../../ledger/sender-ledger.js';
import type { OwnOutcomeRecorder } from './own-outcome-recorder.js';
import type { LedgerCheck } from './ledger-check.js';
import { toRecordable } from './ledger-outcome-recorder.js';
import type { SendReport } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';

/** A line of some 30 KB. */
const KEPT_AT_ONCE = 100;

const WITHOUT_PAYOUT = 'Redis has no payout in this state for it: its record was deleted or altered';

const LEFT_BEHIND = 'its sender ended before the response came; it may have been sent';

/**
 * Repairs sends after a crash, a lost reply or a Redis that came back older. Its methods throw RedisUnavailableError.
 */
export class SendRecovery {
  readonly #runtime: SenderRuntime;
  readonly #check: LedgerCheck;
  readonly #attempts: OwnOutcomeRecorder;

  constructor(runtime: SenderRuntime, check: LedgerCheck, attempts: OwnOutcomeRecorder) {
    this.#runtime = runtime;
    this.#check = check;
    this.#attempts = attempts;
  }

  /**
   * Clears what the ledger has as `sending` although this process has no send in progress. Own attempts are put back or
   * confirmed. Those of earlier senders get the journaled outcome or become `unknown`.
   */
  async resolveLeftovers(): Promise<void> {
    const { senderLedger, logger } = this.#runtime;
    const { heldLease, sends } = this.#check;
    const left: SendAttempt[] = [];
    for (const attempt of await senderLedger.readSending()) {
      if (sends.isCurrent(attempt)) continue;
      if (sends.isUnwritten(attempt)) await this.#putBackUnwritten(attempt);
      else if (!(await this.#resolveByJournal(attempt))) left.push(attempt);
    }
    if (left.length === 0) return;
    await this.#attempts.confirmLast();
    const { inFlightMs = UNKNOWN_IN_FLIGHT_MS } = heldLease.view;
    const marked = await senderLedger.markSendsUnknown(heldLease.lease, left, LEFT_BEHIND, inFlightMs);
    if (marked === undefined) return;
    for (const payoutId of marked) {
      logger.error(
        { payoutId },
        'payout is unknown: its sender ended before the response came; `payouts resolve` decides',
      );
    }
    await this.#removeEntries(left.map(({ payoutId }) => payoutId).filter((payoutId) => !marked.includes(payoutId)));
  }

  /** Of entries without a payout, which no outcome could ever end. The journal keeps what it has of their sends. */
  async #removeEntries(payoutIds: readonly string[]): Promise<void> {
    if (payoutIds.length === 0) return;
    const { senderLedger, journal, clock, logger } = this.#runtime;
    const { heldLease, sends } = this.#check;
    const { inFlightMs = UNKNOWN_IN_FLIGHT_MS } = heldLease.view;
    const removed = await senderLedger.removeSendingEntries(heldLease.lease, payoutIds, WITHOUT_PAYOUT);
    for (const payoutId of removed ?? []) {
      logger.error({ payoutId }, `removed from the index of sending: ${WITHOUT_PAYOUT}`);
      for (const { outcome, ...send } of journal.lastSends(Infinity)) {
        if (send.payoutId !== payoutId || outcome !== undefined || sends.isCurrent(send)) continue;
        const inFlightUntil = clock.wallNow() + inFlightMs;
        journal.noteOutcome(send, { kind: 'unknown', reason: WITHOUT_PAYOUT, inFlightUntil }, clock.wallNow());
      }
    }
  }

  /** The last heartbeat saw of the ledger what this process knows. */
  get isAsKnown(): boolean {
    const glance = this.#check.heldLease.glance();
    return glance !== undefined && this.#check.isAsKnown(glance);
  }

  get nextHeartbeat(): AbortSignal {
    return this.#check.heldLease.nextHeartbeat();
  }

  /**
   * Works without sends too, and records the last outcome again, in case the ledger lost it.
   * @returns why nothing may be sent from this ledger any more
   */
  async checkLedger(): Promise<LedgerMismatch | undefined> {
    const mismatch = (await this.#check.findMismatch()) ?? (await this.confirmSends());
    if (mismatch !== undefined) return mismatch;
    await this.#keepActs();
    return undefined;
  }

  /**
   * What no heartbeat shows: the records of the sends, and their last outcome.
   * @returns as {@link checkLedger}
   */
  async confirmSends(): Promise<LedgerMismatch | undefined> {
    const mismatch = await this.#check.findForgottenSend();
    if (mismatch === undefined) await this.#attempts.confirmLast();
    return mismatch;
  }

  /** Until they are in the journal, what people did is lost if Redis comes back older. */
  async #keepActs(): Promise<void> {
    const { journal, senderLedger, authority, clock } = this.#runtime;
    const { acts, keptActs } = this.#check;
    // A send's line has the count of acts, and not what they were about.
    for (let isMore = acts > Math.min(journal.acts, keptActs); isMore;) {
      const { entries, ended, decided } = await senderLedger.readUnkept(KEPT_AT_ONCE);
      isMore = entries.length === KEPT_AT_ONCE;
      await authority?.keepRejections?.(decided);
      // While more are unkept, a crash here must not leave a count that says that all are.
      await journal.noteActs({ at: clock.wallNow(), count: isMore ? journal.acts : acts, ended });
      await senderLedger.noteKept(isMore ? 0 : acts, entries);
    }
  }

  async #putBackUnwritten(attempt: SendAttempt): Promise<void> {
    if (await this.#check.mayAnotherHaveSent(attempt)) this.#check.sends.release(attempt);
    else await this.#runtime.senderLedger.revertSend(attempt, 'its begin took effect late; it was not sent');
  }

  /** @returns whether the journal knows the outcome */
  async #resolveByJournal(attempt: SendAttempt): Promise<boolean> {
    const { journal, senderLedger } = this.#runtime;
    const entry = journal.lastSends(Infinity).find((known) => identify(known) === identify(attempt));
    const result = toRecordable(entry?.outcome);
    if (result !== undefined) await this.#attempts.outcomes.replay(attempt, result);
    else if (entry?.outcome?.kind === 'not_sent' && !(await this.#check.mayAnotherHaveSent(attempt))) {
      await senderLedger.revertSend(attempt, entry.outcome.reason);
    } else return false;
    return true;
  }
}

/** At the latest. What a heartbeat shows is looked into at once. */
const LOOK_EVERY_MS = 10_000;
/** The job of a younger change is being added right now. */
const OUTBOX_AGE_MS = 2_000;

/**
 * Repairs attempts without an outcome and payouts without a job, beside the sends, until the signal is aborted. Each
 * heartbeat shows whether the ledger is as this process knows it: then nothing of it is read.
 */
export async function recoverRegularly(
  { clock, relayOutbox, logger }: Pick<SenderRuntime, 'clock' | 'relayOutbox' | 'logger'>,
  recovery: SendRecovery,
  onMismatch: (mismatch: LedgerMismatch) => void,
  signal: AbortSignal,
): Promise<void> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  const recover = async (): Promise<void> => {
    const now = clock.now();
    const { isAsKnown } = recovery;
    if (!isAsKnown || now - lookedAt >= LOOK_EVERY_MS) {
      if (!isAsKnown) await recovery.resolveLeftovers();
      const mismatch = await (isAsKnown ? recovery.confirmSends() : recovery.checkLedger());
      if (mismatch !== undefined) onMismatch(mismatch);
      lookedAt = now;
    }
    const payouts = await relayOutbox(clock.wallNow() - OUTBOX_AGE_MS, signal);
    if (payouts > 0) logger.info({ payouts }, 'checked payouts whose job may have been missing');
  };
  while (!isAborted(signal)) {
    // Taken first: a heartbeat during the work is not missed.
    const next = followSignals(signal, recovery.nextHeartbeat);
    try {
      await recover();
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'recovery was interrupted, will try again');
    }
    await untilAborted(next.signal);
    next.end();
  }
}

/** Reports a rejected begin, and resolves leftovers that block it. */
export async function reportRefusedBegin(
  rejection: RejectionOf<'begin-send'>,
  check: LedgerCheck,
  recovery: SendRecovery,
): Promise<SendReport> {
  switch (rejection.kind) {
    case 'lease_lost':
      return { kind: 'lease_lost' };
    case 'paused':
      return { kind: 'paused', reason: rejection.reason };
    case 'objected':
      return { kind: 'objected', reason: rejection.reason };
    case 'other_gateway':
      return { kind: 'other_gateway', audience: rejection.audience };
    case 'other_ledger':
      return reportMismatch(check.otherLedger);
    case 'sends_differ': {
      const mismatch = check.explainDifference(rejection);
      return mismatch === undefined
        ? { kind: 'not_sent', reason: 'send counter was behind; will retry' }
        : reportMismatch(mismatch);
    }
    case 'others_sending':
      await recovery.resolveLeftovers();
      return { kind: 'not_sent', reason: `payouts were left in sending: ${rejection.payoutIds.join(', ')}` };
    case 'wrong_state':
      // The payout changed between read and begin.
      return rejection.state === 'queued'
        ? { kind: 'not_sent', reason: 'the payout changed' }
        : { kind: 'skipped', state: rejection.state };
  }
}

export function reportMismatch(mismatch: LedgerMismatch): Extract<SendReport, { kind: 'ledger_mismatch' }> {
  return { kind: 'ledger_mismatch', mismatch };
}
