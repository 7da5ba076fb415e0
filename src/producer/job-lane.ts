import type { Clock } from '../clock.js';
import type { AccountQueues } from '../queues/account-queues.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import type { JobTrace } from '../queues/job-trace.js';
import type { JobSource } from '../queues/payout-queues.js';
import { runOutside } from './run-outside.js';

/** Jobs that are added together, where each comes from a call of its own. */
const JOBS_PER_BATCH = 250;
/** Between two batches that are not full, in ms: each costs Redis two waits for its disk, which `enqueue` feels. */
const REST_MS = 50;
/** From this number of waiting jobs on, callers wait for their own: what is in memory is bounded. */
const FULL = 1_000;
/** Payouts that waited longer are left to the outbox, in ms: the worker has taken them up by now. */
const TOO_LATE_MS = 5_000;

export interface JobLaneOptions extends AccountQueues {
  readonly clock: Clock;
}

interface Entry extends AcceptedPayouts {
  readonly addedAt: number;
  readonly isAwaited: boolean;
  readonly trace: JobTrace | undefined;
  readonly settle: () => void;
}

/**
 * Brings accepted payouts into the queue behind the calls that enqueued them, in the order of these calls: one batch after
 * the other adds its jobs and clears the outbox. Whatever fails, or ends with the process, is in the outbox still.
 */
export class JobLane {
  readonly #options: JobLaneOptions;
  readonly #waiting: Entry[] = [];
  #waitingJobs = 0;
  #awaited = 0;
  #isRunning = false;
  #resting: AbortController | undefined;

  constructor(options: JobLaneOptions) {
    this.#options = options;
  }

  /** Whether so much waits that callers have to wait for their own. */
  get isFull(): boolean {
    return this.#waitingJobs >= FULL;
  }

  /**
   * Takes payouts behind all that it was given before, and begins their span in the caller's trace.
   * @param isAwaited - the caller waits for it, so it does not wait for others to share a batch
   * @returns resolves once they have their jobs, or are left to the outbox; never rejects
   */
  async deliver(accepted: AcceptedPayouts, { isAwaited }: { readonly isAwaited: boolean }): Promise<void> {
    const jobs = countJobs(accepted);
    const trace = jobs === 0 ? undefined : this.#options.queues.beginTrace(jobs);
    const settled = new Promise<void>((settle) => {
      this.#waiting.push({ ...accepted, addedAt: this.#options.clock.now(), isAwaited, trace, settle });
    });
    this.#waitingJobs += jobs;
    if (isAwaited) this.#awaited += 1;
    if (!this.#mayRest()) this.#resting?.abort();
    if (!this.#isRunning) void runOutside(async () => this.#run());
    return settled;
  }

  /** Resolves once all that it was given has a job, or is left to the outbox; never rejects. */
  async settled(): Promise<void> {
    if (this.#isRunning) await this.deliver({ fresh: [], waiting: [] }, { isAwaited: true });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    let clearing = Promise.resolve();
    while (this.#waiting.length > 0) {
      const startedAt = this.#options.clock.now();
      const batch = this.#take();
      const isAdded = await this.#options.relay.tryAddAccepted(batch.flatMap(toJobSources));
      // The outbox is cleared while the next batch is added; the order matters among the jobs only.
      await clearing;
      clearing = this.#finish(batch, isAdded);
      await this.#rest(startedAt);
      if (this.#waiting.length === 0) await clearing;
    }
    this.#isRunning = false;
  }

  #take(): Entry[] {
    this.#leaveLate();
    const batch: Entry[] = [];
    for (let jobs = 0; jobs < JOBS_PER_BATCH;) {
      const entry = this.#waiting.shift();
      if (entry === undefined) break;
      batch.push(entry);
      jobs += countJobs(entry);
    }
    this.#noteGone(batch);
    return batch;
  }

  #noteGone(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#waitingJobs -= countJobs(entry);
      if (entry.isAwaited) this.#awaited -= 1;
    }
  }

  /** A job that is added after the worker has sent its payout would cost the queue a second. */
  #leaveLate(): void {
    const { clock, relay } = this.#options;
    const oldest = clock.now() - TOO_LATE_MS;
    const inTime = this.#waiting.findIndex(({ addedAt }) => addedAt >= oldest);
    const late = this.#waiting.splice(0, inTime === -1 ? this.#waiting.length : inTime);
    this.#noteGone(late);
    relay.leave(late.flatMap(toJobSources), `Redis took more than ${TOO_LATE_MS} ms for the jobs before`);
    settleAll(late);
  }

  async #finish(batch: readonly Entry[], isAdded: boolean): Promise<void> {
    if (isAdded) await this.#options.relay.tryClearAccepted(batch.flatMap(({ fresh }) => fresh));
    settleAll(batch);
  }

  #mayRest(): boolean {
    return this.#waitingJobs < JOBS_PER_BATCH && this.#awaited === 0;
  }

  /** Lets the next batch gather. */
  async #rest(since: number): Promise<void> {
    const { clock } = this.#options;
    const leftMs = REST_MS - (clock.now() - since);
    if (leftMs <= 0 || !this.#mayRest()) return;
    this.#resting = new AbortController();
    await clock.sleep(leftMs, this.#resting.signal);
    this.#resting = undefined;
  }
}

function toJobSources({ fresh, waiting, trace }: Entry): JobSource[] {
  const all = [...fresh, ...waiting];
  return trace === undefined ? all : all.map((payout) => ({ ...payout, traceContext: trace.context }));
}

function countJobs({ fresh, waiting }: AcceptedPayouts): number {
  return fresh.length + waiting.length;
}

function settleAll(entries: readonly Entry[]): void {
  for (const { trace, settle } of entries) {
    trace?.end();
    settle();
  }
}
