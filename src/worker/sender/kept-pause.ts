import type { SentOutcome, WithdrawGateway, WithdrawOutcome } from '../../gateway/gateway.js';
import type { ControlJournal } from '../../journal/control-journal.js';
import type { ResumeAuthority } from './send-authority.js';
import type { SenderRuntime } from './sender-runtime.js';

type PauseRuntime = Pick<SenderRuntime, 'senderLedger' | 'gateway' | 'clock' | 'observer' | 'logger'> & {
  readonly journal: Pick<ControlJournal, 'pausedAt' | 'pausedReason' | 'notePaused' | 'noteResumed'>;
};

/**
 * Keeps each pause in the journal, so that deleting it from Redis does not end it. Only an unused act that an operator
 * signed later does.
 */
export class KeptPause {
  readonly #runtime: PauseRuntime;
  readonly #authority: ResumeAuthority;
  #noting: Promise<void> = Promise.resolve();
  #reported: string | undefined;

  constructor(runtime: PauseRuntime, authority: ResumeAuthority) {
    this.#runtime = runtime;
    this.#authority = authority;
  }

  /** Never throws: if this fails, the next try to send repeats it. */
  note(reason: string): void {
    // An act signed before this moment does not end the pause, however late the journal is written.
    const at = this.#runtime.clock.wallNow();
    this.#noting = this.#noting
      .then(async () => this.#write({ at, reason }))
      .catch((error: unknown) => {
        this.#runtime.logger.error({ error: (error as Error).message }, 'the pause could not be journaled');
      });
  }

  /** A block is noted before Redis has the outcome: someone who writes there could pretend that it was counted. */
  noteOutcome(outcome: WithdrawOutcome): void {
    const reason = blockedReasonOf(this.#runtime.gateway, outcome);
    if (reason !== undefined) this.note(reason);
  }

  /** Why this worker keeps the account paused, whatever Redis says. */
  get reason(): string | undefined {
    return this.#runtime.journal.pausedReason;
  }

  async #write(paused: { readonly at: number; readonly reason: string }): Promise<void> {
    const { journal } = this.#runtime;
    if (journal.pausedAt === undefined) await journal.notePaused(paused);
  }

  /**
   * Ends the kept pause if an operator signed that.
   * @returns why nothing may be sent
   * @throws RedisUnavailableError; Error if the journal cannot be written
   */
  async find(): Promise<string | undefined> {
    const { journal, senderLedger } = this.#runtime;
    await this.#noting;
    const { pausedAt } = journal;
    if (pausedAt === undefined) return undefined;
    const { pausedReason, resumeAct } = await senderLedger.readSender();
    if (pausedReason !== undefined) return pausedReason;
    const verdict = this.#authority.judgeResume(resumeAct, pausedAt);
    if (verdict.kind === 'refused') return this.#refuse(verdict.message);
    await journal.noteResumed({ at: this.#runtime.clock.wallNow(), act: verdict.actHash });
    this.#reported = undefined;
    return undefined;
  }

  #refuse(message: string): string {
    const reason = `The pause in the send journal of this worker was not ended by a signed act: ${message}. Run \`payouts resume --key FILE\`.`;
    if (reason !== this.#reported) {
      this.#runtime.logger.error({ reason }, 'a pause in the send journal was not ended by a signed act');
      this.#runtime.observer.signatureRefused('resume', true);
    }
    this.#reported = reason;
    return reason;
  }
}

/** Without a response nothing is known about the account. */
export function blockedReasonOf(
  gateway: Pick<WithdrawGateway, 'classifyStop'>,
  outcome: SentOutcome | WithdrawOutcome,
): string | undefined {
  if (outcome.kind === 'rejected') return gateway.classifyStop(outcome.message, outcome.httpStatus).blockedReason;
  if (outcome.kind !== 'unknown' || outcome.httpStatus === undefined) return undefined;
  return gateway.classifyStop(outcome.reason, outcome.httpStatus).blockedReason;
}
