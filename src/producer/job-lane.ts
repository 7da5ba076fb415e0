import type { Clock } from '../base/clock.js';
import type { AccountQueues } from '../queues/account-queues.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import type { JobSource, JobTrace } from '../queues/payout-queues.js';
import { runOutside } from './run-outside.js';

const JOBS_PER_BATCH = 250;
/** Pause between two partial batches, in ms. Each batch costs Redis two waits for its disk, which delay `enqueue`. */
const REST_MS = 50;
/** From this number of waiting jobs on, callers wait for theirs, to bound memory. */
const FULL = 1_000;
/** From this wait on, in ms, the worker may have added the job and sent the payout. */
const LATE_MS = 5_000;

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
  readonly #account: AccountQueues;
  readonly #clock: Clock;
  readonly #waiting: Entry[] = [];
  #waitingJobs = 0;
  #awaited = 0;
  #isRunning = false;
  #resting: AbortController | undefined;

  constructor(account: AccountQueues, clock: Clock) {
    this.#account = account;
    this.#clock = clock;
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
    const trace = jobs === 0 ? undefined : this.#account.queues.beginTrace(jobs);
    const settled = new Promise<void>((settle) => {
      this.#waiting.push({ ...accepted, addedAt: this.#clock.now(), isAwaited, trace, settle });
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
      const startedAt = this.#clock.now();
      const batch = this.#take();
      const isUncleared = await this.#add(batch);
      // The outbox is cleared while the next batch is added. Only the order of jobs matters.
      await clearing;
      clearing = this.#finish(batch, isUncleared);
      await this.#rest(startedAt);
      if (this.#waiting.length === 0) await clearing;
    }
    this.#isRunning = false;
  }

  /** A batch, or all that is late: so a slow Redis gets one more chance for these, and callers do not wait for many. */
  #take(): Entry[] {
    const batch: Entry[] = [];
    let jobs = 0;
    for (const entry of this.#waiting) {
      if (jobs >= JOBS_PER_BATCH && !this.#isLate(entry)) break;
      batch.push(entry);
      jobs += countJobs(entry);
      if (entry.isAwaited) this.#awaited -= 1;
    }
    this.#waiting.splice(0, batch.length);
    this.#waitingJobs -= jobs;
    return batch;
  }

  /**
   * A job added after its payout was sent would cost the queue a second, so late payouts are read first. They are not
   * simply left to the outbox: if this process was busy and no worker runs, later calls would overtake them.
   * @returns whether jobs were added whose outbox entries remain
   */
  async #add(batch: readonly Entry[]): Promise<boolean> {
    const { relay } = this.#account;
    const jobs = batch.flatMap(toJobSources);
    if (!batch.some((entry) => this.#isLate(entry))) return relay.tryAddAccepted(jobs);
    // The worker may have sent them by now: add only jobs that are missing.
    const payoutIds = jobs.map(({ payoutId }) => payoutId);
    await relay.tryDeliver('queued', payoutIds);
    return false;
  }

  #isLate({ addedAt }: Entry): boolean {
    return this.#clock.now() - addedAt > LATE_MS;
  }

  async #finish(batch: readonly Entry[], isUncleared: boolean): Promise<void> {
    if (isUncleared) await this.#account.relay.tryClearAccepted(batch.flatMap(({ fresh }) => fresh));
    settleAll(batch);
  }

  #mayRest(): boolean {
    return this.#waitingJobs < JOBS_PER_BATCH && this.#awaited === 0;
  }

  async #rest(since: number): Promise<void> {
    const leftMs = REST_MS - (this.#clock.now() - since);
    if (leftMs <= 0 || !this.#mayRest()) return;
    this.#resting = new AbortController();
    await this.#clock.sleep(leftMs, this.#resting.signal);
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
