import type { Clock } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { SentOutcome } from '../../gateway/gateway.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { SendAttempt, SenderLedger } from '../../ledger/sender-ledger.js';
import { blockedReasonOf } from './kept-pause.js';
import type { LedgerCheck, OwnAttempts } from './ledger-check.js';
import type { OutcomeRecorder } from './outcome-recorder.js';

interface AttemptRecorderOptions {
  readonly clock: Clock;
  readonly ledger: Pick<SenderLedger, 'revertSend'>;
  readonly journal: Pick<SendJournal, 'noteOutcome'>;
  readonly ownAttempts: OwnAttempts;
  readonly check: Pick<LedgerCheck, 'mayAnotherHaveSent'>;
  readonly outcomes: OutcomeRecorder;
  readonly stopGrace: StopGrace;
  /** Called with the reason while Redis rejects an outcome, then with undefined. */
  readonly onUnrecordable: (reason: string | undefined) => void;
  readonly logger: Logger;
}

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2_000;

export class AttemptRecorder {
  readonly #options: AttemptRecorderOptions;
  #lastFinished: { attempt: SendAttempt; outcome: SentOutcome } | undefined;

  constructor(options: AttemptRecorderOptions) {
    this.#options = options;
  }

  /**
   * Puts back an unwritten attempt, unless another sender journaled its number: the ledger could not tell the two
   * apart. It stays tracked, because its begin may still take effect.
   */
  async revert(attempt: SendAttempt, reason: string): Promise<void> {
    const { journal, ledger, clock, ownAttempts, check } = this.#options;
    journal.noteOutcome(attempt, { kind: 'not_sent', reason }, clock.wallNow());
    if (await check.mayAnotherHaveSent(attempt)) {
      ownAttempts.release(attempt);
      return;
    }
    ownAttempts.trackUnwritten(attempt);
    await this.#untilRecorded('put back', attempt, async () => ledger.revertSend(attempt, reason));
  }

  async finish(attempt: SendAttempt, outcome: SentOutcome): Promise<void> {
    const { journal, clock, outcomes } = this.#options;
    this.#lastFinished = { attempt, outcome };
    journal.noteOutcome(attempt, toResult(outcome), clock.wallNow());
    const result = await this.#untilRecorded('record the outcome', attempt, async () =>
      outcomes.record(attempt, toResult(outcome), blockedReasonOf(outcome)),
    );
    if (result !== undefined) outcomes.report(attempt, toResult(outcome), result);
  }

  /**
   * Records the last outcome again, which is harmless. A Redis that came back older may have lost it, and without a
   * further send nothing would notice.
   * @throws RedisUnavailableError
   */
  async confirmLast(): Promise<void> {
    if (this.#lastFinished === undefined) return;
    const { outcomes } = this.#options;
    const { attempt, outcome } = this.#lastFinished;
    const result = await outcomes.record(attempt, toResult(outcome), blockedReasonOf(outcome));
    if (result.recorded) outcomes.report(attempt, toResult(outcome), result);
  }

  /** Retries until Redis stores it, because nothing else can, or a stopping process's grace ends. */
  async #untilRecorded<Reply>(
    what: string,
    { payoutId }: SendAttempt,
    call: () => Promise<Reply>,
  ): Promise<Reply | undefined> {
    const { clock, stopGrace, onUnrecordable, logger } = this.#options;
    const isOver = stopGrace.start();
    let isUnrecordable = false;
    for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      try {
        const reply = await call();
        if (isUnrecordable) onUnrecordable(undefined);
        return reply;
      } catch (error) {
        const { message } = error as Error;
        if (error instanceof RedisUnavailableError) {
          logger.warn({ payoutId, error: message, retryInMs: delayMs }, `cannot ${what}: Redis unavailable`);
        } else {
          isUnrecordable = true;
          onUnrecordable(`cannot ${what}, payout ${payoutId}: ${message}`);
          logger.error({ payoutId, error: message, retryInMs: delayMs }, `cannot ${what}: Redis refuses it`);
        }
        if (isOver()) return undefined;
        await clock.sleep(delayMs);
      }
    }
  }
}

function toResult(outcome: SentOutcome): SentOutcome {
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'accepted', txhash: outcome.txhash };
    case 'rejected':
      return { kind: 'rejected', message: outcome.message };
    case 'unknown':
      return { kind: 'unknown', reason: outcome.reason };
  }
}

interface StopGraceOptions {
  readonly clock: Clock;
  readonly stop: AbortSignal;
  readonly graceMs: number;
}

/** Decides when a stopping process no longer waits for Redis. */
export class StopGrace {
  readonly #options: StopGraceOptions;

  constructor(options: StopGraceOptions) {
    this.#options = options;
  }

  /** The grace begins at the stop or now, whichever is later. @returns whether it is over, when called */
  start(): () => boolean {
    const { clock, stop, graceMs } = this.#options;
    let stoppedAt: number | undefined;
    return () => {
      if (!stop.aborted) return false;
      stoppedAt ??= clock.now();
      return clock.now() - stoppedAt >= graceMs;
    };
  }
}
