import type { JournaledOutcome } from '../../journal/journal-line.js';
import type { SentOutcome } from '../../gateway/withdraw-gateway.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { FinishResult, SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../logger.js';
import { findBlockedReason } from './blocked-reason.js';
import type { KeptPause } from './kept-pause.js';

export interface OutcomeRecorderOptions {
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  /** For how long a request without a response may be on its way, in ms. */
  readonly doubtMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Told of a pause; undefined where none is kept. */
  readonly pause?: Pick<KeptPause, 'note'> | undefined;
  readonly logger: Logger;
}

/** Outcomes that a process journaled and could not record are among the newest. */
const REPLAYED_SENDS = 10;

/** Records the outcomes of attempts in the ledger, and logs what is left to operators. It needs no lease: an outcome is a fact. */
export class OutcomeRecorder {
  readonly #options: OutcomeRecorderOptions;

  constructor(options: OutcomeRecorderOptions) {
    this.#options = options;
  }

  /**
   * @param blockedReason - why the response is about the account rather than about the payout
   * @throws RedisUnavailableError
   */
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
    // A recording that was done twice, the first time without a reply, is no cause for alarm.
    if (!recorded) logger.warn({ payoutId, outcome }, 'the outcome had been recorded or decided before');
    if (pausedReason !== undefined) {
      logger.error({ payoutId, pausedReason }, 'the account is paused; `payouts resume` lets it send again');
    }
  }

  /**
   * Records outcomes that the journal knows and the ledger does not: their sender ended in between.
   * @returns whether that is all; false where the ledger still has one of these payouts as being sent
   * @throws RedisUnavailableError
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

  /** Records an outcome that the journal knows. @throws RedisUnavailableError */
  async replay(attempt: SendAttempt, result: SentOutcome): Promise<void> {
    const blockedReason = result.kind === 'rejected' ? findBlockedReason(result.message) : undefined;
    const finished = await this.record(attempt, result, blockedReason);
    if (!finished.recorded) return;
    this.#options.logger.info({ payoutId: attempt.payoutId, outcome: result }, 'recorded the outcome from the journal');
    this.report(attempt, result, finished);
  }
}

/** What a journaled outcome says for certain of a send. */
export function toRecordable(outcome: JournaledOutcome | undefined): SentOutcome | undefined {
  return outcome?.kind === 'accepted' || outcome?.kind === 'rejected' ? outcome : undefined;
}
