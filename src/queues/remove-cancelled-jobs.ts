import type { Queue } from 'bullmq';
import { isAborted } from '../base/clock.js';
import { ask, type LedgerConnection } from '../ledger/ledger-connection.js';
import { JOB_STRUCTURES, JobRecords, runQueueScript } from './job-records.js';
import { LIST_REACH, toPayoutId } from './payout-queues.js';

/** Jobs per step. Removing all of them takes Redis 1.5 ms, plus up to 2 ms for the walk. */
const STEP = 100;
/** Jobs that may have been added in front or taken behind since a part was read. */
const MARGIN = 100;
/** Overlap of steps towards the head, because jobs taken meanwhile move the others. */
const OVERLAP = 10;
/** After this many valid jobs in a row, the worker stops and looks again at its next cancelled job. */
const LOOKED_AHEAD = 1_000;
/** Redis serves others between two removals, for about the duration of one. */
const REST_MS = 3;

interface Part {
  readonly first: number;
  readonly last: number;
}

/**
 * Removes the waiting jobs of cancelled payouts. Each would delay later payouts by a second, because BullMQ's limiter
 * counts jobs, not sends. BullMQ's own removal walks through the list for each job: up to 4 ms in a backlog of 100,000.
 * This reads page by page, and lists from both ends. Jobs beyond {@link LIST_REACH} from both ends stay until the
 * worker comes near.
 * @param signal - ends it between two steps; jobs that stay do no harm
 * @param reach - entries from a list's end that are read
 * @returns the number of removed jobs
 */
export async function removeCancelledJobs(
  connection: LedgerConnection,
  queue: Queue,
  signal: AbortSignal,
  reach = LIST_REACH,
): Promise<number> {
  let removed = 0;
  for (const { name, type } of JOB_STRUCTURES.filter((structure) => structure.name !== 'active')) {
    const sweep = new Sweep(connection, queue, queue.toKey(name), type);
    removed += await sweep.fromHead(signal, type === 'list' ? reach : Infinity);
    if (type === 'list' && !sweep.isDone) removed += await sweep.fromTail(signal, reach, Infinity);
  }
  return removed;
}

/**
 * As {@link removeCancelledJobs}, but only for the next jobs, up to a part without cancelled ones. So a worker runs
 * only one of many adjacent cancelled jobs.
 */
export async function removeNextCancelledJobs(
  connection: LedgerConnection,
  queue: Queue,
  signal: AbortSignal,
): Promise<number> {
  return new Sweep(connection, queue, queue.toKey('wait'), 'list').fromTail(signal, LIST_REACH, LOOKED_AHEAD);
}

class Sweep {
  readonly #connection: LedgerConnection;
  readonly #queue: Queue;
  readonly #key: string;
  readonly #type: 'list' | 'sorted set';
  readonly #records: JobRecords;
  isDone = false;

  constructor(connection: LedgerConnection, queue: Queue, key: string, type: 'list' | 'sorted set') {
    this.#connection = connection;
    this.#queue = queue;
    this.#key = key;
    this.#type = type;
    this.#records = new JobRecords(connection.redis);
  }

  /** From where jobs are added. New jobs move the others towards it. */
  async fromHead(signal: AbortSignal, reach: number): Promise<number> {
    let removed = 0;
    for (let start = 0; start < reach && !this.isDone && !isAborted(signal);) {
      const gone = await this.#step({ first: start, last: start + STEP - 1 }, signal);
      removed += gone;
      // Entries behind removed ones have moved up.
      start += STEP - gone;
    }
    return removed;
  }

  /** From where jobs are taken. @param atMost - ends after this many valid jobs in a row */
  async fromTail(signal: AbortSignal, reach: number, atMost: number): Promise<number> {
    let removed = 0;
    let quiet = 0;
    for (let start = 0; start < reach && quiet < atMost && !this.isDone && !isAborted(signal);) {
      const gone = await this.#step({ first: -start - STEP, last: -start - 1 }, signal);
      removed += gone;
      quiet = gone > 0 ? 0 : quiet + STEP - OVERLAP;
      start += Math.max(0, STEP - OVERLAP - gone);
    }
    return removed;
  }

  async #step({ first, last }: Part, signal: AbortSignal): Promise<number> {
    const { redis, clock } = this.#connection;
    const jobIds = await ask(
      this.#type === 'list'
        ? redis.lrange(this.#key, first, last)
        : redis.zrange(this.#key, first, String(last), 'REV'),
    );
    const cancelled = await this.#findCancelled(jobIds);
    const removed = cancelled.length === 0 ? 0 : await this.#remove({ first, last }, cancelled);
    this.isDone = jobIds.length < STEP;
    if (removed > 0) await clock.sleep(REST_MS, signal);
    return removed;
  }

  async #findCancelled(jobIds: readonly string[]): Promise<string[]> {
    const expected = await this.#records.readJobIds(this.#connection.keys, 'cancelled', jobIds.map(toPayoutId));
    return jobIds.filter((_, index) => expected[index] !== undefined);
  }

  async #remove({ first, last }: Part, jobIds: readonly string[]): Promise<number> {
    const { redis, keys } = this.#connection;
    const ofJobs = jobIds.flatMap((jobId) => [
      this.#queue.toKey(jobId),
      this.#queue.toKey(`${jobId}:lock`),
      keys.payout(toPayoutId(jobId)),
    ]);
    // Added jobs move a part away from the head, and taken jobs move it to the tail.
    const until = first < 0 ? Math.min(-1, last + MARGIN) : last + MARGIN;
    const args = [this.#type, first, until, '~removed~', ...jobIds];
    return Number(await runQueueScript(redis, 'remove-cancelled-jobs', [this.#key, ...ofJobs], args));
  }
}
