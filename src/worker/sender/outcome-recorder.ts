import type { JournaledOutcome } from '../../journal/journal-line.js';
import type { SentOutcome } from '../../gateway/gateway.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { FinishResult, SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../base/logger.js';
import { findBlockedReason, type KeptPause } from './kept-pause.js';

interface OutcomeRecorderOptions {
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly doubtMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Undefined if pauses are not kept in the journal. */
  readonly pause?: Pick<KeptPause, 'note'> | undefined;
  readonly logger: Logger;
}

/** Journaled outcomes that a process could not record are among the newest. */
const REPLAYED_SENDS = 10;

/** Records outcomes in the ledger. It needs no lease: an outcome is a fact. Its methods throw RedisUnavailableError. */
export class OutcomeRecorder {
  readonly #options: OutcomeRecorderOptions;

  constructor(options: OutcomeRecorderOptions) {
    this.#options = options;
  }

  /** @param blockedReason - why the response is about the account rather than the payout */
  async record(attempt: SendAttempt, result: SentOutcome, blockedReason: string | undefined): Promise<FinishResult> {
    const { ledger, maxRejectionsInARow, maxUnknownsInARow, doubtMs } = this.#options;
    const rule = { maxRejectionsInARow, maxUnknownsInARow, ...(blockedReason === undefined ? {} : { blockedReason }) };
    return ledger.finishSend(attempt, result, rule, doubtMs);
  }

  report({ payoutId }: SendAttempt, outcome: SentOutcome, { recorded, pausedReason, latePayment }: FinishResult): void {
    const { logger, pause } = this.#options;
    if (pausedReason !== undefined) pause?.note(pausedReason);
    if (latePayment) {
      logger.error({ payoutId, outcome }, 'payout was paid after it was written off or put back: it may be paid twice');
      return;
    }
    // Recording twice, if the first reply was lost, is no cause for alarm.
    if (!recorded) logger.warn({ payoutId, outcome }, 'the outcome had been recorded or decided before');
    if (pausedReason !== undefined) {
      logger.error({ payoutId, pausedReason }, 'the account is paused; `payouts resume` lets it send again');
    }
  }

  /**
   * Records outcomes that only the journal knows, because their sender ended in between.
   * @returns false if the ledger still has one of these payouts as `sending`
   */
  async replayAll(): Promise<boolean> {
    const { journal, ledger } = this.#options;
    let isComplete = true;
    for (const { outcome, ...send } of journal.lastSends(REPLAYED_SENDS)) {
      const result = toRecordable(outcome);
      if (result === undefined) continue;
      const payout = await ledger.readPayout(send.payoutId);
      if (payout?.state === 'unknown') await this.replay(send, result);
      if (payout?.state === 'sending') isComplete = false;
    }
    return isComplete;
  }

  async replay(attempt: SendAttempt, result: SentOutcome): Promise<void> {
    const blockedReason = result.kind === 'rejected' ? findBlockedReason(result.message) : undefined;
    const finished = await this.record(attempt, result, blockedReason);
    if (!finished.recorded) return;
    this.#options.logger.info({ payoutId: attempt.payoutId, outcome: result }, 'recorded the outcome from the journal');
    this.report(attempt, result, finished);
  }
}

/** The journaled outcome, if it is certain. */
export function toRecordable(outcome: JournaledOutcome | undefined): SentOutcome | undefined {
  return outcome?.kind === 'accepted' || outcome?.kind === 'rejected' ? outcome : undefined;
}
