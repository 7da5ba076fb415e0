import type { Clock } from '../clock.js';
import type { WithdrawOutcome } from '../gateway/withdraw-gateway.js';
import type { FinishResult, SendAttempt, SenderLedger, SendResult } from '../ledger/sender-ledger.js';
import type { Logger } from '../logger.js';
import { readBlockedReason } from './breaker.js';
import type { HeldLease } from './lease-keeper.js';
import { recoverSends } from './recovery.js';

export interface AttemptBookOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly held: HeldLease;
  /** Aborted when the process ends and Redis can be waited for no longer. */
  readonly giveUp: AbortSignal;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  readonly logger: Logger;
}

type SentOutcome = Exclude<WithdrawOutcome, { kind: 'not_sent' }>;

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2_000;

/**
 * What this process itself knows of its attempts, and the recording of it, however long Redis is away.
 *
 * The ledger may say `sending` of an attempt whose begin got no reply, or forget an answer when it comes back older.
 * This process knows better: it did not write the one, and it remembers the other.
 */
export class AttemptBook {
  readonly #options: AttemptBookOptions;
  /** By payout: attempts that have begun, or maybe begun, and were certainly not written. */
  readonly #unwritten = new Map<string, SendAttempt[]>();
  #lastFinished: { attempt: SendAttempt; outcome: SentOutcome } | undefined;

  constructor(options: AttemptBookOptions) {
    this.#options = options;
  }

  mayHaveBegun(attempt: SendAttempt): void {
    const known = this.#unwritten.get(attempt.payoutId) ?? [];
    const others = known.filter((other) => other.attempt !== attempt.attempt);
    this.#unwritten.set(attempt.payoutId, [...others, attempt]);
  }

  /** It is about to be written, or another may have sent it: from here on nothing but an outcome may speak for it. */
  disown(attempt: SendAttempt): void {
    this.#unwritten.delete(attempt.payoutId);
  }

  /** Puts back an attempt that was not written. It stays in the book, because its begin may yet take effect in Redis. */
  async revert(attempt: SendAttempt, reason: string): Promise<void> {
    this.mayHaveBegun(attempt);
    await this.#untilRedisAnswers('put back', attempt, () => this.#options.ledger.revertSend(attempt, reason));
  }

  /** Records the outcome of an attempt that was written, and tells when that paused the account. */
  async finish(attempt: SendAttempt, outcome: SentOutcome): Promise<void> {
    this.#lastFinished = { attempt, outcome };
    const result = await this.#untilRedisAnswers('record the outcome', attempt, () => this.#record(attempt, outcome));
    if (result !== undefined) this.#report(attempt, outcome, result);
  }

  /**
   * Records the last outcome once more, which changes nothing unless the ledger has forgotten it: one that came back
   * older may have the attempt as `sending`, and there may be no other payout to send that would find it there.
   * @throws RedisUnavailableError
   */
  async confirmLast(): Promise<void> {
    if (this.#lastFinished === undefined) return;
    const { attempt, outcome } = this.#lastFinished;
    const result = await this.#record(attempt, outcome);
    if (result.recorded) this.#report(attempt, outcome, result);
  }

  /**
   * Clears payouts that the ledger has as `sending` although no send is under way in this process.
   */
  async settleLeftovers(payoutIds: readonly string[]): Promise<void> {
    const { held, ledger, logger } = this.#options;
    for (const payoutId of payoutIds) {
      for (const attempt of this.#unwritten.get(payoutId) ?? []) {
        await ledger.revertSend(attempt, 'its begin was noted late; it was not sent');
      }
    }
    await this.confirmLast();
    await recoverSends({ ledger, lease: held.lease, logger });
  }

  async #record(attempt: SendAttempt, outcome: SentOutcome): Promise<FinishResult> {
    const { ledger, maxRejectionsInARow, maxUnknownsInARow } = this.#options;
    const blockedReason = outcome.kind === 'rejected' ? readBlockedReason(outcome.message) : undefined;
    const rule = { maxRejectionsInARow, maxUnknownsInARow, ...(blockedReason === undefined ? {} : { blockedReason }) };
    return ledger.finishSend(attempt, toResult(outcome), rule);
  }

  #report(attempt: SendAttempt, outcome: SentOutcome, { recorded, pausedReason }: FinishResult): void {
    const { payoutId } = attempt;
    // A recording that was done twice, the first time without a reply, is no cause for alarm.
    if (!recorded) this.#options.logger.warn({ payoutId, outcome }, 'the outcome had been recorded or decided before');
    if (pausedReason !== undefined) {
      this.#options.logger.error({ payoutId, pausedReason }, 'the account is paused; `payouts resume` lets it go on');
    }
  }

  /** Only Redis can take what has to be recorded, so this asks until it does, or the process must end. */
  async #untilRedisAnswers<Reply>(
    what: string,
    attempt: SendAttempt,
    call: () => Promise<Reply>,
  ): Promise<Reply | undefined> {
    const { clock, giveUp, logger } = this.#options;
    for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      try {
        return await call();
      } catch (error) {
        const { payoutId } = attempt;
        logger.warn({ payoutId, error: (error as Error).message, retryInMs: delayMs }, `cannot ${what}: Redis is away`);
        if (giveUp.aborted) return undefined;
        await clock.sleep(delayMs, giveUp);
      }
    }
  }
}

function toResult(outcome: SentOutcome): SendResult {
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'accepted', txhash: outcome.txhash };
    case 'rejected':
      return { kind: 'rejected', message: outcome.message };
    case 'unknown':
      return { kind: 'unknown', reason: outcome.reason };
  }
}
