import type { Clock } from '../clock.js';
import type { AccountQueues } from '../queues/account-queues.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import type { JobTrace } from '../queues/job-trace.js';
import type { JobSource } from '../queues/payout-queues.js';
import { runOutside } from './run-outside.js';

const JOBS_PER_BATCH = 250;
/** Pause between two partial batches, in ms. Each batch costs Redis two waits for its disk, which delay `enqueue`. */
const REST_MS = 50;
/** From this number of waiting jobs on, callers wait for theirs, to bound memory. */
const FULL = 1_000;
/** Payouts that waited longer, in ms, are left to the outbox: the worker has them by now. */
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
 * Adds the jobs of accepted payouts behind the calls, in call order. Batch by batch, it adds jobs and clears the
 * outbox. Whatever fails, or ends with the process, is still in the outbox.
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

  get isFull(): boolean {
    return this.#waitingJobs >= FULL;
  }

  /**
   * Queues payouts in order, and begins their span in the caller's trace.
   * @param isAwaited - the caller waits, so do not wait for others to share a batch
   * @returns resolves once the jobs are added or left to the outbox; never rejects
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
      // The outbox is cleared while the next batch is added. Only the order of jobs matters.
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

  /** A job added after its payout was sent would cost the queue a second. */
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
