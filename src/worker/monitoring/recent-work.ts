import type { Clock } from '../../base/clock.js';
import type { ErrorCode } from '../../base/errors.js';
import type { SendGap } from '../statistics/counters.js';
import type { WorkerObserver } from '../sender/worker-observer.js';

/** The same thing that went wrong several times in a row. */
interface Streak {
  readonly count: number;
  /** Of the last time. */
  readonly reason: string;
  readonly code?: ErrorCode | undefined;
}

/** Tries to send that ended before anything was written. */
interface NotSent extends Streak {
  /** When the next try is due, on the clock's scale. */
  readonly retryAt: number;
}

const SYNCS = 5;

/** Those of some minutes, where Redis does not take them. */
const GAPS = 500;

/** What a process repaired is told for as long, as the alerts do, in ms. */
const REPAIR_TOLD_MS = 60 * 60 * 1_000;

/** Something that was repaired without an operator. */
interface Repair {
  readonly count: number;
  readonly at: number;
}

/** What the last sends, polls and journal entries of an account came to: what only this process knows. */
export class RecentWork {
  /** Notes each, and hands it on. */
  readonly observer: WorkerObserver;
  readonly #clock: Clock;
  #notSent: NotSent | undefined;
  #failedPolls: Streak | undefined;
  #lastSentAt: number;
  #wasUnanswered = false;
  #syncsMs: readonly number[] = [];
  #gaps: readonly SendGap[] = [];
  #jobsRecreated: Repair | undefined;
  #workersReplaced: Repair | undefined;
  #resumeWasRefused = false;
  #archiveTrouble: string | undefined;

  /** @param observer - what is told as well */
  constructor(clock: Clock, observer: WorkerObserver) {
    this.#clock = clock;
    this.#lastSentAt = clock.now();
    this.observer = {
      ...observer,
      sent: (outcome, durationMs) => {
        this.#lastSentAt = clock.now();
        this.#wasUnanswered = outcome === 'unknown';
        this.#notSent = undefined;
        this.#resumeWasRefused = false;
        observer.sent(outcome, durationMs);
      },
      sendGap: (gapMs) => {
        this.#gaps = [...this.#gaps, { at: clock.wallNow(), gapMs: Math.round(gapMs) }].slice(-GAPS);
        observer.sendGap(gapMs);
      },
      notSent: (reason, retryInMs, code) => {
        this.#notSent = { reason, code, count: (this.#notSent?.count ?? 0) + 1, retryAt: clock.now() + retryInMs };
        observer.notSent(reason, retryInMs);
      },
      polled: (result, error, code) => {
        const count = (this.#failedPolls?.count ?? 0) + 1;
        this.#failedPolls = result === 'error' ? { count, reason: error ?? 'no reason was given', code } : undefined;
        observer.polled(result, error);
      },
      journalSynced: (durationMs) => {
        this.#syncsMs = [...this.#syncsMs, durationMs].slice(-SYNCS);
        observer.journalSynced(durationMs);
      },
      signatureRefused: (reason, isTampering) => {
        if (reason === 'resume') this.#resumeWasRefused = true;
        observer.signatureRefused(reason, isTampering);
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

  /** The account is this process's to send for: what was not sent before that is no fault of it. */
  beginSending(): void {
    this.#lastSentAt = this.#clock.now();
  }

  /** Another process sends from now on: whether what was wrong here is still so, this one does not find out. */
  endSending(): void {
    this.#notSent = undefined;
  }

  /** The same of polls. */
  endPolling(): void {
    this.#failedPolls = undefined;
  }

  /** The gaps between writes that were measured since this was asked last. */
  takeGaps(): readonly SendGap[] {
    const gaps = this.#gaps;
    this.#gaps = [];
    return gaps;
  }

  /** Jobs that were missing in Redis and were added again, the last of them within the hour. */
  get jobsRecreated(): number {
    return this.#countRecent(this.#jobsRecreated);
  }

  /** BullMQ workers that hung and were replaced, the last of them within the hour. */
  get jobWorkersReplaced(): number {
    return this.#countRecent(this.#workersReplaced);
  }

  #countRecent(repair: Repair | undefined): number {
    return repair !== undefined && this.#clock.now() - repair.at < REPAIR_TOLD_MS ? repair.count : 0;
  }

  /** Tries to send a payout since the last send, each of which ended before anything was written. */
  get notSent(): NotSent | undefined {
    return this.#notSent;
  }

  /** Why payouts that are old enough are not removed: the archive, where they have to be first, cannot be written. */
  get archiveTrouble(): string | undefined {
    return this.#archiveTrouble;
  }

  /** @param trouble - undefined where the archive could be written */
  noteArchive(trouble: string | undefined): void {
    this.#archiveTrouble = trouble;
  }

  /** Whether a pause was gone from Redis that no operator had ended, since the last send. */
  get resumeWasRefused(): boolean {
    return this.#resumeWasRefused;
  }

  /** Whether the last send had no trustworthy response. */
  get wasUnanswered(): boolean {
    return this.#wasUnanswered;
  }

  /** Status polls that failed since one that did not. */
  get failedPolls(): Streak | undefined {
    return this.#failedPolls;
  }

  /** Since the last send, or since this process is to send for the account, in ms. */
  get sinceLastSendMs(): number {
    return this.#clock.now() - this.#lastSentAt;
  }

  /** The shortest of the last syncs of the send journal, in ms; undefined until there were {@link SYNCS}. */
  get shortestSyncMs(): number | undefined {
    return this.#syncsMs.length < SYNCS ? undefined : Math.min(...this.#syncsMs);
  }
}
