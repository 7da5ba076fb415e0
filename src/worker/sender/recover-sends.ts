import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { identify } from '../../journal/journal-line.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../logger.js';
import type { AttemptRecorder } from './attempt-recorder.js';
import type { HeldLease } from './lease-keeper.js';
import type { LedgerCheck } from './ledger-check.js';
import { toRecordable, type OutcomeRecorder } from './outcome-recorder.js';
import type { OwnAttempts } from './own-attempts.js';

export interface SendRecoveryOptions {
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
