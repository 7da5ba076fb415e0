import { readFileSync } from 'node:fs';
import type { Queue } from 'bullmq';
import { isAborted, type Clock } from '../clock.js';
import { ask, type LedgerConnection } from '../ledger/ledger-connection.js';
import { JOB_STRUCTURES } from './job-places.js';
import { JobRecords } from './job-records.js';
import { LIST_REACH, toPayoutId } from './payout-queues.js';

/** Jobs that are looked at together; removing all of them takes Redis 1.5 ms, and up to 2 ms more for the walk to them. */
const STEP = 100;
/** Jobs that may have been added in front since a part of the list was read, or taken behind it. */
const MARGIN = 100;
/** Each step towards the head repeats this much of the one before, because jobs that were taken meanwhile move the others. */
const OVERLAP = 10;
/** Behind this number of jobs in a row that are to be run, the worker looks again when it meets a cancelled one. */
const LOOKED_AHEAD = 1_000;
/** Redis serves others between two removals, for about as long as one lasts. */
const REST_MS = 3;
const COMMAND = 'payouts:remove-cancelled-jobs';
const SCRIPT = readFileSync(new URL('remove-cancelled-jobs.lua', import.meta.url), 'utf8');

export interface SweepOptions {
  readonly clock: Clock;
  /** Ends it between two steps; jobs that stay do no harm. */
  readonly signal: AbortSignal;
  /** How far from either end of a list jobs are looked for. @defaultValue {@link LIST_REACH} */
  readonly reach?: number;
}

/** A part of a list, as LRANGE takes it: below zero from the tail. */
interface Part {
  readonly first: number;
  readonly last: number;
}

/**
 * Removes the waiting jobs of payouts that are cancelled. Each would cost the payouts behind it a second, because BullMQ's
 * limiter counts jobs, not sends. BullMQ's own removal of one job walks through the list: of 20,000 in a backlog of 100,000
 * each takes Redis up to 4 ms. This goes through the structures page by page, and through a list from both ends: what stands
 * further from both than {@link LIST_REACH} stays until the worker comes near it.
 * @returns how many were removed
 * @throws RedisUnavailableError
 */
export async function removeCancelledJobs(
  connection: LedgerConnection,
  queue: Queue,
  options: SweepOptions,
): Promise<number> {
  let removed = 0;
  for (const { name, type } of JOB_STRUCTURES.filter((structure) => structure.name !== 'active')) {
    const sweep = new Sweep(connection, queue, queue.toKey(name), type);
    removed += await sweep.fromHead(options);
    if (type === 'list' && !sweep.isDone) removed += await sweep.fromTail(options, Infinity);
  }
  return removed;
}

/**
 * As {@link removeCancelledJobs}, but only of the jobs that are run next, up to a part without any. For the worker that meets
 * a cancelled one: of many that stand together it has to run one.
 */
export async function removeNextCancelledJobs(
  connection: LedgerConnection,
  queue: Queue,
  options: SweepOptions,
): Promise<number> {
  return new Sweep(connection, queue, queue.toKey('wait'), 'list').fromTail(options, LOOKED_AHEAD);
}

/** Goes through one structure. */
class Sweep {
  readonly #connection: LedgerConnection;
  readonly #queue: Queue;
  readonly #key: string;
  readonly #type: 'list' | 'sorted set';
  readonly #records: JobRecords;
  /** Whether it came to the other end. */
  isDone = false;

  constructor(connection: LedgerConnection, queue: Queue, key: string, type: 'list' | 'sorted set') {
    this.#connection = connection;
    this.#queue = queue;
    this.#key = key;
    this.#type = type;
    this.#records = new JobRecords(connection.redis);
    // Once for a connection: a command that was defined again is sent with its whole text.
    if (!(COMMAND in connection.redis)) connection.redis.defineCommand(COMMAND, { lua: SCRIPT });
  }

  /** From where jobs are added; what is added meanwhile moves the others towards it. */
  async fromHead(options: SweepOptions): Promise<number> {
    const reach = this.#type === 'list' ? (options.reach ?? LIST_REACH) : Infinity;
    let removed = 0;
    for (let start = 0; start < reach && !this.isDone && !isAborted(options.signal);) {
      const gone = await this.#step({ first: start, last: start + STEP - 1 }, options);
      removed += gone;
      // What stands behind what was removed has moved up.
      start += STEP - gone;
    }
    return removed;
  }

  /** From where jobs are taken. @param atMost - it ends behind this number in a row that are not to be removed */
  async fromTail(options: SweepOptions, atMost: number): Promise<number> {
    const { reach = LIST_REACH } = options;
    let removed = 0;
    let quiet = 0;
    for (let start = 0; start < reach && quiet < atMost && !this.isDone && !isAborted(options.signal);) {
      const gone = await this.#step({ first: -start - STEP, last: -start - 1 }, options);
      removed += gone;
      quiet = gone > 0 ? 0 : quiet + STEP - OVERLAP;
      start += Math.max(0, STEP - OVERLAP - gone);
    }
    return removed;
  }

  /** @returns how many were removed */
  async #step({ first, last }: Part, { clock, signal }: SweepOptions): Promise<number> {
    const { redis } = this.#connection;
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
    // Jobs that were added move the part from the head, and jobs that were taken move it to the tail.
    const until = first < 0 ? Math.min(-1, last + MARGIN) : last + MARGIN;
    const args = [this.#type, first, until, '~removed~', ...jobIds];
    const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
    const reply = commands[COMMAND]?.(1 + ofJobs.length, this.#key, ...ofJobs, ...args);
    return Number(await ask(reply ?? Promise.resolve(0)));
  }
}
