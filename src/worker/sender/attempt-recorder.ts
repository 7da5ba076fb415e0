import type { Clock } from '../../clock.js';
import { RedisUnavailableError } from '../../errors.js';
import type { SentOutcome } from '../../gateway/withdraw-gateway.js';
import { identify } from '../../journal/journal-view.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { SendAttempt, SenderLedger, SendResult } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../logger.js';
import { blockedReasonOf } from './blocked-reason.js';
import type { HeldLease } from './lease-keeper.js';
import { OutcomeRecorder, toRecordable } from './outcome-recorder.js';
import type { StopGrace } from './stop-grace.js';

export interface AttemptRecorderOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly journal: SendJournal;
  readonly held: HeldLease;
  readonly stopGrace: StopGrace;
  /** Reads what other processes added to the journal, and has it judged before the next send. */
  readonly catchUpWithJournal: () => Promise<void>;
  /** For how long a request without a response may be on its way, in ms. */
  readonly doubtMs: number;
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Told why an outcome cannot be recorded although Redis responds; with undefined once it could be. */
  readonly onUnrecordable: (reason: string | undefined) => void;
  readonly logger: Logger;
}

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2_000;

const LEFT_BEHIND = 'its sender ended before the response came; it may have been sent';

/**
 * What this process itself knows of its attempts, and the recording of it, however long Redis is unavailable.
 *
 * The ledger may say `sending` of an attempt whose begin got no reply, or forget a response when it comes back older.
 * This process knows better: it did not write the one, and it remembers the other.
 */
export class AttemptRecorder {
  readonly #options: AttemptRecorderOptions;
  readonly #recorder: OutcomeRecorder;
  /** Attempts that have begun, or maybe begun, and were certainly not written, by their identity. */
  readonly #unwritten = new Map<string, SendAttempt>();
  /** The attempt that is under way: it is nobody's leftover. */
  #underWay: SendAttempt | undefined;
  #lastFinished: { attempt: SendAttempt; outcome: SentOutcome } | undefined;

  constructor(options: AttemptRecorderOptions) {
    this.#options = options;
    this.#recorder = new OutcomeRecorder(options);
  }

  /** An attempt is about to begin. Until {@link ended} it is under way. */
  mayBegin(attempt: SendAttempt): void {
    this.#underWay = attempt;
    this.#unwritten.set(identify(attempt), attempt);
  }

  /** What was under way has come to an end, one way or the other. */
  ended(): void {
    this.#underWay = undefined;
  }

  /**
   * The ledger has begun this attempt. None that came before can take effect any more: it named the line of sends as it was.
   */
  noteBegun(attempt: SendAttempt): void {
    this.#unwritten.clear();
    this.#unwritten.set(identify(attempt), attempt);
  }

  /** Whether the token is of an attempt that this process began, or tried to, and did not write. */
  isUnwritten(token: string): boolean {
    return [...this.#unwritten.values()].some((attempt) => attempt.token === token);
  }

  /** It is about to be written: from here on nothing but an outcome may speak for it. */
  noteWritten(attempt: SendAttempt): void {
    this.#release(attempt);
  }

  /**
   * Puts back an attempt that was not written, unless another sender journaled an attempt of the same number: the ledger
   * could not tell the two apart by their number. It stays in the book, because its begin may yet take effect in Redis.
   */
  async revert(attempt: SendAttempt, reason: string): Promise<void> {
    const { journal, ledger, clock } = this.#options;
    journal.noteOutcome(attempt, { kind: 'not_sent', reason }, clock.wallNow());
    if (await this.#maySomebodyElseHaveSent(attempt)) {
      this.#release(attempt);
      return;
    }
    this.#unwritten.set(identify(attempt), attempt);
    await this.#untilRecorded('put back', attempt, async () => ledger.revertSend(attempt, reason));
  }

  /** Records the outcome of an attempt that was written, and tells when that paused the account. */
  async finish(attempt: SendAttempt, outcome: SentOutcome): Promise<void> {
    this.#lastFinished = { attempt, outcome };
    this.#options.journal.noteOutcome(attempt, toResult(outcome), this.#options.clock.wallNow());
    const result = await this.#untilRecorded('record the outcome', attempt, async () =>
      this.#recorder.record(attempt, toResult(outcome), blockedReasonOf(outcome)),
    );
    if (result !== undefined) this.#recorder.report(attempt, toResult(outcome), result);
  }

  /**
   * Records the last outcome once more, which changes nothing unless the ledger has forgotten it: one that came back
   * older may have the attempt as `sending`, and there may be no other payout to send that would find it there.
   * @throws RedisUnavailableError
   */
  async confirmLast(): Promise<void> {
    if (this.#lastFinished === undefined) return;
    const { attempt, outcome } = this.#lastFinished;
    const result = await this.#recorder.record(attempt, toResult(outcome), blockedReasonOf(outcome));
    if (result.recorded) this.#recorder.report(attempt, toResult(outcome), result);
  }

  /**
   * Clears what the ledger has as `sending` although no send is under way in this process: its own attempts are put back
   * or confirmed, those of earlier senders come to what the journal says of them, or become `unknown`.
   * @throws RedisUnavailableError
   */
  async resolveLeftovers(): Promise<void> {
    const { ledger, held, doubtMs, logger } = this.#options;
    const sending = await ledger.readSending();
    const left: SendAttempt[] = [];
    for (const attempt of sending) {
      if (this.#underWay !== undefined && identify(attempt) === identify(this.#underWay)) continue;
      if (this.#unwritten.has(identify(attempt))) await this.#settleOwn(attempt);
      else if (!(await this.#settleByJournal(attempt))) left.push(attempt);
    }
    if (left.length === 0) return;
    await this.confirmLast();
    for (const payoutId of (await ledger.abandonSends(held.lease, left, LEFT_BEHIND, doubtMs)) ?? []) {
      logger.error(
        { payoutId },
        'payout is unknown: its sender ended before the response came; `payouts resolve` decides',
      );
    }
  }

  async #settleOwn(attempt: SendAttempt): Promise<void> {
    if (await this.#maySomebodyElseHaveSent(attempt)) this.#release(attempt);
    else await this.#options.ledger.revertSend(attempt, 'its begin was noted late; it was not sent');
  }

  /** @returns whether the journal knows what became of it */
  async #settleByJournal(attempt: SendAttempt): Promise<boolean> {
    const { journal, ledger } = this.#options;
    const entry = journal.lastSends(Infinity).find((known) => identify(known) === identify(attempt));
    const result = toRecordable(entry?.outcome);
    if (result !== undefined) await this.#recorder.replay(attempt, result);
    else if (entry?.outcome?.kind === 'not_sent' && !(await this.#maySomebodyElseHaveSent(attempt))) {
      await ledger.revertSend(attempt, entry.outcome.reason);
    } else return false;
    return true;
  }

  #release(attempt: SendAttempt): void {
    this.#unwritten.delete(identify(attempt));
  }

  /** Where the journal cannot tell, somebody may. */
  async #maySomebodyElseHaveSent(attempt: SendAttempt): Promise<boolean> {
    try {
      await this.#options.catchUpWithJournal();
      return this.#options.journal.knowsFromAnother(attempt);
    } catch {
      return true;
    }
  }

  /** Only Redis can take what has to be recorded, so this asks until it does, or the process must end. */
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
