import { within } from '../base/clock.js';
import type { EnqueueResult } from '../ledger/payout-ledger.js';
import type { NewPayout } from '../ledger/payout.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { AcceptedPayouts } from '../queues/outbox-relay.js';
import { AccountNotes } from './account-notes.js';
import { EnqueueGroups } from './enqueue-groups.js';
import { JobLane } from './job-lane.js';
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
