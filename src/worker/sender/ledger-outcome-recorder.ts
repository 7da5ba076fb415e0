import { RedisUnavailableError } from '../../base/errors.js';
import { onAnyClock } from '../../base/clock.js';
import type { JournaledOutcome } from '../../journal/journal-line.js';
import type { SentOutcome } from '../../gateway/gateway.js';
import type { FinishResult, SendAttempt } from '../../ledger/sender-ledger.js';
import { blockedReasonOf, type KeptPause } from './kept-pause.js';
import type { SenderRuntime } from './sender-runtime.js';

/** Journaled outcomes that a process could not record are among the newest. */
const REPLAYED_SENDS = 10;

/** Records outcomes in the ledger. It needs no lease: an outcome is a fact. Its methods throw RedisUnavailableError. */
export class LedgerOutcomeRecorder {
  readonly #runtime: SenderRuntime;
  readonly #pause: KeptPause | undefined;

  /** @param pause - undefined if pauses are not kept in the journal */
  constructor(runtime: SenderRuntime, pause: KeptPause | undefined) {
    this.#runtime = runtime;
    this.#pause = pause;
  }

  /** @param blockedReason - why the response is about the account rather than the payout */
  async record(attempt: SendAttempt, result: SentOutcome, blockedReason: string | undefined): Promise<FinishResult> {
    const { gateway, senderLedger, settings } = this.#runtime;
    const { maxRejectionsInARow, maxPayoutRejectionsInARow, maxUnknownsInARow } = settings;
    const isOwn = result.kind === 'rejected' && gateway.classifyStop(result.message).isOfPayout;
    const rule = {
      ...{ maxRejectionsInARow, maxUnknownsInARow, blockedReason },
      maxPayoutRejectionsInARow: isOwn ? maxPayoutRejectionsInARow : undefined,
    };
    // Only the process that reset the request records `unknown`: the network alone may still have it.
    return senderLedger.finishSend(attempt, result, rule, onAnyClock(settings.inFlightMaxMs));
  }

  report({ payoutId }: SendAttempt, outcome: SentOutcome, { recorded, pausedReason, latePayment }: FinishResult): void {
    const { logger } = this.#runtime;
    if (pausedReason !== undefined) this.#pause?.note(pausedReason);
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
   * Records outcomes that only the journal knows, because their sender ended in between. One that cannot be recorded
   * keeps back no other.
   * @returns false if the ledger still has one of these payouts as `sending`
   */
  async replayAll(): Promise<boolean> {
    const { journal, senderLedger, logger } = this.#runtime;
    let isComplete = true;
    for (const { outcome, ...send } of journal.lastSends(REPLAYED_SENDS)) {
      const result = toRecordable(outcome);
      if (result === undefined) continue;
      try {
        const payout = await senderLedger.readPayout(send.payoutId);
        if (payout?.state === 'unknown') await this.replay(send, result);
        if (payout?.state === 'sending') isComplete = false;
      } catch (error) {
        if (error instanceof RedisUnavailableError) throw error;
        // It must not stop the account, but operators must see it.
        const { payoutId } = send;
        logger.error(
          { payoutId, error: (error as Error).message },
          'cannot record an outcome that the send journal has',
        );
      }
    }
    return isComplete;
  }

  async replay(attempt: SendAttempt, result: SentOutcome): Promise<void> {
    const blockedReason = blockedReasonOf(this.#runtime.gateway, result);
    const finished = await this.record(attempt, result, blockedReason);
    if (!finished.recorded) return;
    this.#runtime.logger.info({ payoutId: attempt.payoutId, outcome: result }, 'recorded the outcome from the journal');
    this.report(attempt, result, finished);
  }
}

/**
 * The journaled outcome, if it is the attempt's own response. A payment that was found is none: replayed as one it would
 * end the wait for the request. The worker asks for it again.
 */
export function toRecordable(outcome: JournaledOutcome | undefined): SentOutcome | undefined {
  if (outcome?.kind === 'accepted') return outcome.found ? undefined : outcome;
  return outcome?.kind === 'rejected' ? outcome : undefined;
}
