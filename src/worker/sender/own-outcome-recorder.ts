import { type Clock, onAnyClock } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import type { SentOutcome } from '../../gateway/gateway.js';
import type { JournaledOutcome } from '../../journal/journal-line.js';
import type { SendAttempt } from '../../ledger/sender-ledger.js';
import { blockedReasonOf } from './kept-pause.js';
import type { LedgerCheck } from './ledger-check.js';
import type { LedgerOutcomeRecorder } from './ledger-outcome-recorder.js';
import type { SenderRuntime } from './sender-runtime.js';

/** Called with the reason while Redis rejects an outcome, then with undefined. */
export type OnUnrecordable = (reason: string | undefined) => void;

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2_000;

/**
 * Ends this process's own attempts in journal and ledger: put back unwritten, or with their outcome. Repeats it until
 * Redis has it.
 */
export class OwnOutcomeRecorder {
  readonly outcomes: LedgerOutcomeRecorder;
  readonly #runtime: SenderRuntime;
  readonly #check: LedgerCheck;
  readonly #stopGrace: StopGrace;
  readonly #onUnrecordable: OnUnrecordable;

  constructor(
    runtime: SenderRuntime,
    check: LedgerCheck,
    outcomes: LedgerOutcomeRecorder,
    stopGrace: StopGrace,
    onUnrecordable: OnUnrecordable,
  ) {
    this.#runtime = runtime;
    this.#check = check;
    this.outcomes = outcomes;
    this.#stopGrace = stopGrace;
    this.#onUnrecordable = onUnrecordable;
  }

  /**
   * Puts back an unwritten attempt, unless another sender journaled its number: the ledger could not tell the two
   * apart. It stays tracked, because its begin may still take effect.
   */
  async revert(attempt: SendAttempt, reason: string): Promise<void> {
    const { journal, senderLedger, clock } = this.#runtime;
    const { sends } = this.#check;
    journal.noteOutcome(attempt, { kind: 'not_sent', reason }, clock.wallNow());
    if (await this.#check.mayAnotherHaveSent(attempt)) {
      sends.release(attempt);
      return;
    }
    sends.trackUnwritten(attempt);
    await this.#untilRecorded('put back', attempt, async () => senderLedger.revertSend(attempt, reason));
  }

  async finish(attempt: SendAttempt, outcome: SentOutcome): Promise<void> {
    const { gateway, journal, clock } = this.#runtime;
    const { outcomes } = this;
    this.#check.sends.lastFinished = { attempt, outcome };
    journal.noteOutcome(attempt, this.#toJournaled(outcome), clock.wallNow());
    const result = await this.#untilRecorded('record the outcome', attempt, async () =>
      outcomes.record(attempt, toResult(outcome), blockedReasonOf(gateway, outcome)),
    );
    if (result !== undefined) outcomes.report(attempt, toResult(outcome), result);
  }

  #toJournaled(outcome: SentOutcome): JournaledOutcome {
    const { clock, settings } = this.#runtime;
    const result = toResult(outcome);
    if (result.kind !== 'unknown') return result;
    return { ...result, inFlightUntil: clock.wallNow() + onAnyClock(settings.inFlightMaxMs) };
  }

  /**
   * Records the last outcome again, which is harmless. A Redis that came back older may have lost it, and without a
   * further send nothing would notice.
   * @throws RedisUnavailableError
   */
  async confirmLast(): Promise<void> {
    const { lastFinished } = this.#check.sends;
    if (lastFinished === undefined) return;
    const { gateway } = this.#runtime;
    const { outcomes } = this;
    const { attempt, outcome } = lastFinished;
    const result = await outcomes.record(attempt, toResult(outcome), blockedReasonOf(gateway, outcome));
    if (result.recorded) outcomes.report(attempt, toResult(outcome), result);
  }

  /** Retries until Redis stores it, because nothing else can, or a stopping process's grace ends. */
  async #untilRecorded<Reply>(
    what: string,
    { payoutId }: SendAttempt,
    call: () => Promise<Reply>,
  ): Promise<Reply | undefined> {
    const { clock, logger } = this.#runtime;
    const isOver = this.#stopGrace.start();
    let isUnrecordable = false;
    for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      try {
        const reply = await call();
        if (isUnrecordable) this.#onUnrecordable(undefined);
        return reply;
      } catch (error) {
        const { message } = error as Error;
        if (error instanceof RedisUnavailableError) {
          logger.warn({ payoutId, error: message, retryInMs: delayMs }, `cannot ${what}: Redis unavailable`);
        } else {
          isUnrecordable = true;
          this.#onUnrecordable(`cannot ${what}, payout ${payoutId}: ${message}`);
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
    case 'accepted': {
      const { kind, gatewayId, txhash } = outcome;
      return { kind, gatewayId, ...(txhash !== undefined && { txhash }) };
    }
    case 'rejected':
      return { kind: 'rejected', message: outcome.message };
    case 'unknown':
      return { kind: 'unknown', reason: outcome.reason };
  }
}

/** Decides when a stopping process no longer waits for Redis. */
export class StopGrace {
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #graceMs: number;

  constructor(clock: Clock, stop: AbortSignal, graceMs: number) {
    this.#clock = clock;
    this.#stop = stop;
    this.#graceMs = graceMs;
  }

  /** The grace begins at the stop or now, whichever is later. @returns whether it is over, when called */
  start(): () => boolean {
    let stoppedAt: number | undefined;
    return () => {
      if (!this.#stop.aborted) return false;
      stoppedAt ??= this.#clock.now();
      return this.#clock.now() - stoppedAt >= this.#graceMs;
    };
  }
}
