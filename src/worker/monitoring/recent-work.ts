import type { Clock } from '../../base/clock.js';
import type { ErrorCode } from '../../base/errors.js';
import type { SendGap } from '../statistics/counters.js';
import { type EndedTrouble, RESPONSE_SLOW_MS } from '../../ledger/reads/workers.js';
import type { WorkerObserver } from '../sender/worker-observer.js';

interface Streak {
  readonly count: number;
  readonly reason: string;
  readonly code?: ErrorCode | undefined;
}

interface NotSent extends Streak {
  /** When the next try is due, on the clock's scale. */
  readonly retryAt: number;
}

/** Within a second the gateway may block the account (docs/gateway-api-v1.md#limits). The alert uses the same time. */
const TOO_CLOSE_MS = 1_000;

const SYNCS = 5;

const ANSWERS = 3;

/** Some minutes of gaps, for the time when Redis takes none. */
const GAPS = 500;

/** How long a repair is reported, in ms. The alerts use the same time. */
const REPAIR_SHOWN_MS = 60 * 60 * 1_000;

interface Repair {
  readonly count: number;
  readonly at: number;
}

/** What only this process knows: the results of the account's last sends, polls and journal entries. */
export class RecentWork {
  /** Records each call and passes it on. */
  readonly observer: WorkerObserver;
  readonly #clock: Clock;
  #notSent: NotSent | undefined;
  #failedPolls: Streak | undefined;
  #lastSentAt: number;
  #lastDurationMs = 0;
  #wasUnanswered = false;
  #ended: EndedTrouble | undefined;
  #slow: { readonly durationMs: number; readonly at: number } | undefined;
  #tooClose: { readonly gapMs: number; readonly at: number } | undefined;
  #syncsMs: readonly number[] = [];
  #answersMs: readonly number[] = [];
  #gaps: readonly SendGap[] = [];
  #jobsRecreated: Repair | undefined;
  #workersReplaced: Repair | undefined;
  #resumeWasRefused = false;
  #receiptFailed: { readonly reason: string; readonly at: number } | undefined;
  #archiveTrouble: string | undefined;

  constructor(clock: Clock, observer: WorkerObserver) {
    this.#clock = clock;
    this.#lastSentAt = clock.now();
    this.observer = {
      ...observer,
      sent: (outcome, durationMs) => {
        this.#lastSentAt = clock.now();
        this.#lastDurationMs = durationMs;
        if (durationMs > RESPONSE_SLOW_MS) this.#slow = { durationMs, at: clock.now() };
        this.#wasUnanswered = outcome === 'unknown';
        this.#noteEnd('sends', this.#notSent);
        this.#notSent = undefined;
        this.#resumeWasRefused = false;
        observer.sent(outcome, durationMs);
      },
      sendGap: (gapMs, hadToWait) => {
        const at = clock.wallNow() - this.#lastDurationMs;
        if (gapMs < TOO_CLOSE_MS) this.#tooClose = { gapMs: Math.floor(gapMs), at: clock.now() };
        this.#gaps = [...this.#gaps, { at, gapMs: Math.round(gapMs), hadToWait }].slice(-GAPS);
        observer.sendGap(gapMs, hadToWait);
      },
      notSent: (reason, retryInMs, code) => {
        this.#notSent = { reason, code, count: (this.#notSent?.count ?? 0) + 1, retryAt: clock.now() + retryInMs };
        observer.notSent(reason, retryInMs, code);
      },
      polled: (result, error, code) => {
        const count = (this.#failedPolls?.count ?? 0) + 1;
        if (result !== 'error') this.#noteEnd('polls', this.#failedPolls);
        this.#failedPolls = result === 'error' ? { count, reason: error ?? 'no reason was given', code } : undefined;
        observer.polled(result, error);
      },
      journalSynced: (durationMs) => {
        this.#syncsMs = [...this.#syncsMs, durationMs].slice(-SYNCS);
        observer.journalSynced(durationMs);
      },
      gatewayCalled: (call) => {
        const { end } = call;
        if (end !== undefined) this.#answersMs = [...this.#answersMs, end.durationMs].slice(-ANSWERS);
        observer.gatewayCalled?.(call);
      },
      signatureRefused: (reason, isTampering) => {
        if (reason === 'resume') this.#resumeWasRefused = true;
        observer.signatureRefused(reason, isTampering);
      },
      receiptFailed: (reason) => {
        this.#receiptFailed = { reason, at: clock.now() };
        observer.receiptFailed(reason);
      },
      jobsRecreated: (state, count) => {
        this.#jobsRecreated = { count: this.jobsRecreated + count, at: clock.now() };
        observer.jobsRecreated(state, count);
      },
      jobWorkerReplaced: (queue) => {
        this.#workersReplaced = { count: this.jobWorkersReplaced + 1, at: clock.now() };
        observer.jobWorkerReplaced(queue);
      },
    };
  }

  #noteEnd(what: EndedTrouble['what'], streak: Streak | undefined): void {
    if (streak === undefined) return;
    const { reason: error, code, count } = streak;
    this.#ended = { what, error, code, count, at: this.#clock.now() };
  }

  /** From now on this process sends for the account. Earlier unsent payouts are not its fault. */
  beginSending(): void {
    this.#lastSentAt = this.#clock.now();
  }

  /** Another process sends from now on, so this one no longer sees whether its troubles last. */
  endSending(): void {
    this.#notSent = undefined;
  }

  endPolling(): void {
    this.#failedPolls = undefined;
  }

  /** The gaps between writes measured since the last call. */
  takeGaps(): readonly SendGap[] {
    const gaps = this.#gaps;
    this.#gaps = [];
    return gaps;
  }

  /** Why a payment ended without a receipt, if that was within the hour. */
  get receiptFailure(): string | undefined {
    const failed = this.#receiptFailed;
    return failed !== undefined && this.#isRecent(failed.at) ? failed.reason : undefined;
  }

  /** Missing jobs added again, if the last was within the hour. */
  get jobsRecreated(): number {
    return this.#countRecent(this.#jobsRecreated);
  }

  /** Hung BullMQ workers replaced, if the last was within the hour. */
  get jobWorkersReplaced(): number {
    return this.#countRecent(this.#workersReplaced);
  }

  #countRecent(repair: Repair | undefined): number {
    return repair !== undefined && this.#isRecent(repair.at) ? repair.count : 0;
  }

  #isRecent(at: number): boolean {
    return this.#clock.now() - at < REPAIR_SHOWN_MS;
  }

  /** Tries since the last send, each of which ended before any byte was written. */
  get notSent(): NotSent | undefined {
    return this.#notSent;
  }

  /** Why old payouts stay: the archive that must store them first cannot be written. */
  get archiveTrouble(): string | undefined {
    return this.#archiveTrouble;
  }

  noteArchive(trouble: string | undefined): void {
    this.#archiveTrouble = trouble;
  }

  /** Whether, since the last send, a pause vanished from Redis without an operator's resume. */
  get resumeWasRefused(): boolean {
    return this.#resumeWasRefused;
  }

  /** The last send that took longer than {@link RESPONSE_SLOW_MS}, and when its response came, on the clock's scale. */
  get slow(): { readonly durationMs: number; readonly at: number } | undefined {
    return this.#slow;
  }

  /** The last two writes within a second, and when that was, on the clock's scale. */
  get tooClose(): { readonly gapMs: number; readonly at: number } | undefined {
    return this.#tooClose;
  }

  get wasUnanswered(): boolean {
    return this.#wasUnanswered;
  }

  /** Its time is on the clock's scale. */
  get ended(): EndedTrouble | undefined {
    return this.#ended;
  }

  /** Polls that failed since the last success. */
  get failedPolls(): Streak | undefined {
    return this.#failedPolls;
  }

  /** Since the last send, or since this process may send, in ms. */
  get sinceLastSendMs(): number {
    return this.#clock.now() - this.#lastSentAt;
  }

  /** The shortest recent sync of the journal, in ms. Undefined until there are {@link SYNCS}. */
  get shortestSyncMs(): number | undefined {
    return this.#syncsMs.length < SYNCS ? undefined : Math.min(...this.#syncsMs);
  }

  /** The shortest of the gateway's last answers, in ms. Undefined until there are {@link ANSWERS}. */
  get shortestAnswerMs(): number | undefined {
    return this.#answersMs.length < ANSWERS ? undefined : Math.min(...this.#answersMs);
  }
}
