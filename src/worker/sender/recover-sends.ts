import { type Clock, every } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { identify } from '../../journal/journal-line.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { ScriptRejection, SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { AttemptRecorder } from './attempt-recorder.js';
import type { HeldLease } from './lease-keeper.js';
import type { LedgerCheck, OwnAttempts } from './ledger-check.js';
import { type OutcomeRecorder, toRecordable } from './outcome-recorder.js';
import type { SendReport } from './send-report.js';

interface SendRecoveryOptions {
  readonly ledger: Pick<SenderLedger, 'readSending' | 'revertSend' | 'markSendsUnknown'>;
  readonly journal: Pick<SendJournal, 'lastSends'>;
  readonly heldLease: HeldLease;
  readonly ownAttempts: OwnAttempts;
  readonly check: LedgerCheck;
  readonly attempts: AttemptRecorder;
  readonly outcomes: OutcomeRecorder;
  readonly doubtMs: number;
  readonly logger: Logger;
}

const LEFT_BEHIND = 'its sender ended before the response came; it may have been sent';

/**
 * Repairs sends after a crash, a lost reply or a Redis that came back older. Its methods throw RedisUnavailableError.
 */
export class SendRecovery {
  readonly #options: SendRecoveryOptions;

  constructor(options: SendRecoveryOptions) {
    this.#options = options;
  }

  /**
   * Clears what the ledger has as `sending` although this process has no send in progress. Own attempts are put back or
   * confirmed. Those of earlier senders get the journaled outcome or become `unknown`.
   */
  async resolveLeftovers(): Promise<void> {
    const { ledger, heldLease, ownAttempts, attempts, doubtMs, logger } = this.#options;
    const left: SendAttempt[] = [];
    for (const attempt of await ledger.readSending()) {
      if (ownAttempts.isCurrent(attempt)) continue;
      if (ownAttempts.isUnwritten(attempt)) await this.#putBackUnwritten(attempt);
      else if (!(await this.#resolveByJournal(attempt))) left.push(attempt);
    }
    if (left.length === 0) return;
    await attempts.confirmLast();
    for (const payoutId of (await ledger.markSendsUnknown(heldLease.lease, left, LEFT_BEHIND, doubtMs)) ?? []) {
      logger.error(
        { payoutId },
        'payout is unknown: its sender ended before the response came; `payouts resolve` decides',
      );
    }
  }

  /**
   * Works without sends too, and records the last outcome again, in case the ledger lost it.
   * @returns why nothing may be sent from this ledger any more
   */
  async checkLedger(): Promise<LedgerMismatch | undefined> {
    const mismatch = await this.#options.check.findMismatch();
    if (mismatch === undefined) await this.#options.attempts.confirmLast();
    return mismatch;
  }

  async #putBackUnwritten(attempt: SendAttempt): Promise<void> {
    const { ledger, ownAttempts, check } = this.#options;
    if (await check.mayAnotherHaveSent(attempt)) ownAttempts.release(attempt);
    else await ledger.revertSend(attempt, 'its begin took effect late; it was not sent');
  }

  /** @returns whether the journal knows the outcome */
  async #resolveByJournal(attempt: SendAttempt): Promise<boolean> {
    const { journal, ledger, outcomes, check } = this.#options;
    const entry = journal.lastSends(Infinity).find((known) => identify(known) === identify(attempt));
    const result = toRecordable(entry?.outcome);
    if (result !== undefined) await outcomes.replay(attempt, result);
    else if (entry?.outcome?.kind === 'not_sent' && !(await check.mayAnotherHaveSent(attempt))) {
      await ledger.revertSend(attempt, entry.outcome.reason);
    } else return false;
    return true;
  }
}

/**
 * Adds the missing jobs of payouts that changed.
 * @param changedBefore - wall clock, ms
 * @returns the number of payouts that were checked
 */
export type RelayOutbox = (changedBefore: number, signal: AbortSignal) => Promise<number>;

interface RecoveryLoopOptions {
  readonly clock: Clock;
  readonly relayOutbox: RelayOutbox;
  readonly recovery: Pick<SendRecovery, 'checkLedger' | 'resolveLeftovers'>;
  readonly onMismatch: (mismatch: LedgerMismatch) => void;
  readonly logger: Logger;
}

const RECOVER_EVERY_MS = 2_000;
/** The job of a younger change is being added right now. */
const OUTBOX_AGE_MS = 2_000;

/** Repairs attempts without an outcome and payouts without a job, beside the sends, until the signal is aborted. */
export async function recoverRegularly(options: RecoveryLoopOptions, signal: AbortSignal): Promise<void> {
  const { clock, relayOutbox, recovery, onMismatch, logger } = options;
  const recover = async (): Promise<void> => {
    await recovery.resolveLeftovers();
    const mismatch = await recovery.checkLedger();
    if (mismatch !== undefined) onMismatch(mismatch);
    const payouts = await relayOutbox(clock.wallNow() - OUTBOX_AGE_MS, signal);
    if (payouts > 0) logger.info({ payouts }, 'checked payouts whose job may have been missing');
  };
  const onError = ({ message }: Error): void => {
    logger.warn({ error: message }, 'recovery was interrupted, will try again');
  };
  await every(RECOVER_EVERY_MS, recover, { clock, signal, onError });
}

/** Reports a rejected begin, and resolves leftovers that block it. */
export async function reportRefusedBegin(
  rejection: ScriptRejection,
  { check, recovery }: { readonly check: LedgerCheck; readonly recovery: SendRecovery },
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
    case 'not_found':
    case 'txhash_taken':
    case 'in_doubt':
    case 'sent_since':
    case 'paid_late':
    case 'rejected_before':
    case 'too_many_approvals':
    case 'came_back_older':
    case 'not_new':
      throw new Error(`begin-send refused with ${rejection.kind}, which it never should`);
  }
}

export function reportMismatch(mismatch: LedgerMismatch): Extract<SendReport, { kind: 'ledger_mismatch' }> {
  return { kind: 'ledger_mismatch', mismatch };
}
