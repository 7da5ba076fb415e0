import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, within } from '../base/clock.js';
import { RedisUnavailableError, StoppedError } from '../base/errors.js';
import type { EnqueueResult, PayoutLedger } from '../ledger/payout-ledger.js';
import type { NewPayout } from '../ledger/payout.js';
import type { AccountQueues } from '../queues/account-queues.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import type { JobSource, JobTrace } from '../queues/payout-queues.js';
import { AccountNotes } from './account-notes.js';
import type { PayoutSigner } from './producer-control.js';

/** Large enough for cheap round trips, small enough to leave Redis time for others. */
export const CHUNK_SIZE = 1_000;

/** How long closing waits for the jobs of accepted payouts, in ms. */
const DRAIN_MS = 5_000;

/**
 * Accepts payouts for an account. A payout is accepted once the ledger's script has stored it with its outbox entry.
 * Its job follows.
 */
export class PayoutIntake {
  readonly #account: LedgerAccess;
  readonly #groups: EnqueueGroups;
  readonly #lane: JobLane;
  readonly #notes: AccountNotes;

  private constructor(account: LedgerAccess, lane: JobLane) {
    this.#account = account;
    this.#groups = new EnqueueGroups(account.ledger);
    this.#lane = lane;
    this.#notes = new AccountNotes(account);
  }

  /** Opens the queues first: between the ledger's change and the job, only Redis may fail. */
  static async open(account: LedgerAccess): Promise<PayoutIntake> {
    return new PayoutIntake(account, new JobLane(await account.openQueues(), account.clock));
  }

  /**
   * @param signal - counts until the payout is sent to Redis
   * @throws RedisUnavailableError if the ledger cannot be written
   * @throws StoppedError if the signal came first
   */
  async enqueue(payout: NewPayout, signal?: AbortSignal): Promise<EnqueueResult> {
    this.#notes.list();
    const result = await this.#groups.enqueue(payout, signal);
    const jobless = findJobless([payout], [result]);
    if (jobless === undefined) return result;
    this.#notes.warnIfUnserved();
    const delivered = this.#lane.deliver(jobless, { isAwaited: false });
    if (this.#lane.isFull) await delivered;
    return result;
  }

  /**
   * Writes payouts to the ledger by chunks. While Redis writes one, the previous one's jobs are prepared.
   * @param chunks - of about {@link CHUNK_SIZE} payouts; the next is read and signed during a write
   * @param signer - signs unsigned payouts, chunk by chunk, so that no signature predates the reading of its payout
   * @returns the results chunk by chunk; at the end all have their jobs or are left to the outbox
   * @throws RedisUnavailableError if the ledger cannot be written; earlier chunks stay accepted
   */
  async *enqueueChunks(
    chunks: Iterable<readonly NewPayout[]> | AsyncIterable<readonly NewPayout[]>,
    signer: Pick<PayoutSigner, 'signAll'> | undefined,
  ): AsyncGenerator<EnqueueResult[]> {
    this.#notes.list();
    let jobless: AcceptedPayouts | undefined;
    let [before, delivered] = [Promise.resolve(), Promise.resolve()];
    const deliver = (): void => {
      if (jobless === undefined) return;
      [before, delivered] = [delivered, this.#lane.deliver(jobless, { isAwaited: true })];
      jobless = undefined;
    };
    const reader = signed(chunks, signer);
    try {
      for (let next = await reader.next(); next.done !== true;) {
        const chunk = next.value;
        const writing = unhandledLater(this.#account.ledger.enqueue(chunk));
        // Two chunks of jobs at a time: more would fill memory if Redis is slow. With one, the jobs would be prepared
        // only after the script has run, because the outbox is cleared behind it.
        await before;
        deliver();
        const reading = unhandledLater(reader.next());
        const results = await writing;
        jobless = findJobless(chunk, results);
        if (jobless !== undefined) this.#notes.warnIfUnserved();
        yield results;
        next = await reading;
      }
    } finally {
      deliver();
      await delivered;
      await reader.return(undefined);
      await this.#notes.settled();
    }
  }

  async settled(): Promise<void> {
    await this.#groups.settled();
    await this.#lane.settled();
    await this.#notes.settled();
  }

  /** Waits for the jobs of accepted payouts, but not for long: the outbox has them. */
  async close(): Promise<void> {
    await within(DRAIN_MS, this.settled(), this.#account.clock);
  }
}

async function* signed(
  chunks: Iterable<readonly NewPayout[]> | AsyncIterable<readonly NewPayout[]>,
  signer: Pick<PayoutSigner, 'signAll'> | undefined,
): AsyncGenerator<readonly NewPayout[], undefined> {
  for await (const chunk of chunks) yield signer === undefined ? chunk : await signer.signAll(chunk);
  return undefined;
}

function unhandledLater<Result>(promise: Promise<Result>): Promise<Result> {
  promise.catch(() => undefined);
  return promise;
}

export function* inChunks(payouts: readonly NewPayout[]): Generator<readonly NewPayout[]> {
  for (let start = 0; start < payouts.length; start += CHUNK_SIZE) yield payouts.slice(start, start + CHUNK_SIZE);
}

/** New payouts, and those still queued: a half-finished enqueue may have left them without a job. */
function findJobless(payouts: readonly NewPayout[], results: readonly EnqueueResult[]): AcceptedPayouts | undefined {
  const fresh = payouts.filter((_, index) => results[index]?.kind === 'created');
  const waiting = results.flatMap((result) =>
    result.kind === 'exists' && result.payout.state === 'queued' ? [result.payout] : [],
  );
  return fresh.length + waiting.length === 0 ? undefined : { fresh, waiting };
}

/**
 * Payouts per script call: Redis is busy for under a millisecond, and some of many calls are left for the next group.
 */
const MAX_GROUP = 32;
/** With one script call at a time, Redis would idle while callers get results, and callers while Redis works. */
const AT_A_TIME = 2;

interface Call {
  readonly payout: NewPayout;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: EnqueueResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Shares script calls among concurrent calls, so Redis waits for its disk once for all. While two groups are in Redis,
 * the next one gathers.
 */
class EnqueueGroups {
  readonly #ledger: Pick<PayoutLedger, 'enqueue'>;
  readonly #waiting: Call[] = [];
  readonly #open = new Set<Call>();
  readonly #asking = new Set<Promise<void>>();
  #running = 0;

  constructor(ledger: Pick<PayoutLedger, 'enqueue'>) {
    this.#ledger = ledger;
  }

  /**
   * @throws RedisUnavailableError also if an earlier group found Redis unavailable, so that a call waits for one time
   * limit only
   */
  async enqueue(payout: NewPayout, signal: AbortSignal | undefined): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      const call = { payout, signal, resolve, reject };
      this.#open.add(call);
      this.#waiting.push(call);
      if (this.#running < AT_A_TIME) this.#start();
    });
  }

  /** Resolves once the calls open now have ended, whatever is called meanwhile; never rejects. */
  async settled(): Promise<void> {
    const calls = [...this.#open];
    while (calls.some((call) => this.#open.has(call))) {
      // Between two groups no call is running.
      await (this.#asking.size === 0 ? nextTurn() : Promise.race(this.#asking));
    }
    // Lets the callers continue first.
    await nextTurn();
  }

  #start(): void {
    this.#running += 1;
    void runOutside(async () => this.#run());
  }

  async #run(): Promise<void> {
    // Callers that got results together call again together, a few microtasks apart.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const asking = this.#ask(this.#takeGroup());
      this.#asking.add(asking);
      await asking;
      this.#asking.delete(asking);
      await nextTurn();
    }
    this.#running -= 1;
  }

  /** An aborted call ends here, unsent. A later abort changes nothing: the payout may be in the ledger. */
  #takeGroup(): Call[] {
    const group = this.#waiting.splice(0, MAX_GROUP);
    const isAborted = ({ signal }: Call): boolean => signal?.aborted === true;
    for (const call of group.filter(isAborted)) {
      this.#reject(call, abortedCall(call.payout));
    }
    return group.filter((call) => !isAborted(call));
  }

  async #ask(group: readonly Call[]): Promise<void> {
    if (group.length === 0) return;
    try {
      const results = await this.#ledger.enqueue(group.map(({ payout }) => payout));
      for (const [index, call] of group.entries()) {
        const result = results[index];
        if (result === undefined) this.#reject(call, new Error('The ledger returned no result for a payout'));
        else this.#resolve(call, result);
      }
    } catch (error) {
      if (error instanceof RedisUnavailableError) {
        for (const call of [...group, ...this.#waiting.splice(0)]) this.#reject(call, error);
      } else {
        await this.#askEach(group, error);
      }
    }
  }

  /**
   * A damaged record fails the script of its whole group. Asked one by one, only its own call fails. Payouts that the
   * failed script accepted are then not `created`.
   */
  async #askEach(group: readonly Call[], error: unknown): Promise<void> {
    const [first, ...others] = group;
    if (first !== undefined && others.length === 0) {
      this.#reject(first, error);
      return;
    }
    await Promise.all(group.map(async (call) => this.#ask([call])));
  }

  #resolve(call: Call, result: EnqueueResult): void {
    this.#open.delete(call);
    call.resolve(result);
  }

  #reject(call: Call, error: unknown): void {
    this.#open.delete(call);
    call.reject(error);
  }
}

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

/**
 * Runs work outside its caller's async context. Shared work must not belong to the trace of the call that happens to
 * begin it, or keep that call's storage alive.
 */
const runOutside = AsyncLocalStorage.snapshot();

export function abortedCall({ payoutId }: NewPayout): StoppedError {
  return new StoppedError(`Payout ${payoutId} was not enqueued: the call was aborted`);
}
