import type { Queue } from 'bullmq';
import { readJson } from '../base/parse-json.js';
import { isAborted } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { ask, type LedgerConnection, pipelined } from '../ledger/ledger-connection.js';
import { countDelayedByHand } from './job-balance.js';
import { runQueueScript } from './job-records.js';
import { delayedScore, toPayoutId } from './payout-queues.js';

/** Jobs per step. */
const STEP = 250;

/**
 * Jobs that are in their queue, and that nothing would ever run: the counts of payouts and jobs agree. Only people make
 * them, by a page for queues or by a command to Redis.
 */
export class StuckJobs {
  readonly #connection: LedgerConnection;
  readonly #logger: Logger;
  /** What an exact look could not explain: it is no reason to look again. */
  #unexplained = 0;

  constructor(connection: LedgerConnection, logger: Logger) {
    this.#connection = connection;
    this.#logger = logger;
  }

  /**
   * BullMQ takes such a job, fails before it calls anyone, and takes it again once its lock has expired. So one that is
   * at its turn is among the active jobs nearly all the time.
   * @returns the number of jobs that it could not read, and can now
   */
  async repairUnreadable(queue: Queue): Promise<number> {
    const { redis } = this.#connection;
    const jobIds = await ask(redis.lrange(queue.toKey('active'), 0, STEP - 1));
    if (jobIds.length === 0) return 0;
    const hashes = (await pipelined(this.#connection, (pipeline) => {
      for (const jobId of jobIds) pipeline.hmget(queue.toKey(jobId), ...READ_BY_BULLMQ);
    })) as (string | null)[][];
    let repaired = 0;
    for (const [index, jobId] of jobIds.entries()) {
      const fields = repairedFields(jobId, hashes[index] ?? []);
      if (fields.length === 0) continue;
      const isRepaired = (await runQueueScript(redis, 'repair-job', [queue.toKey(jobId)], fields)) === 1;
      if (!isRepaired) continue;
      repaired += 1;
      this.#logger.warn({ queue: queue.name, jobId }, 'a job could not be read; repaired it');
    }
    return repaired;
  }

  /**
   * Gives jobs that were delayed by hand the time of their payout back. BullMQ asks for delayed jobs every ten seconds.
   * @param signal - ends it between two steps
   * @returns the number of jobs with another time than before
   */
  async restoreTimes(queue: Queue, signal: AbortSignal): Promise<number> {
    const excess = await countDelayedByHand(this.#connection, queue);
    this.#unexplained = Math.max(0, Math.min(this.#unexplained, excess));
    if (excess <= this.#unexplained) return 0;
    let restored = 0;
    // From the latest: a job that gets an earlier time moves behind what is read.
    for (let start = 0; !isAborted(signal);) {
      const [jobIds, late] = await this.#restoreStep(queue, start);
      restored += late;
      start += jobIds - late;
      if (jobIds < STEP) break;
    }
    // Jobs that move meanwhile may be missed: the next look decides.
    this.#unexplained = restored > 0 ? 0 : Math.max(0, await countDelayedByHand(this.#connection, queue));
    if (restored > 0) this.#logger.warn({ restored }, 'jobs were delayed by hand; they have the time of their payout');
    return restored;
  }

  /** @returns the number of delayed jobs that it read, and of those that were too late */
  async #restoreStep(queue: Queue, start: number): Promise<readonly [number, number]> {
    const { redis, keys, clock } = this.#connection;
    const delayed = queue.toKey('delayed');
    const range = await ask(redis.zrange(delayed, start, String(start + STEP - 1), 'REV', 'WITHSCORES'));
    const jobs = range.flatMap((jobId, index) => (index % 2 === 0 ? [{ jobId, score: Number(range[index + 1]) }] : []));
    if (jobs.length === 0) return [0, 0];
    const records = (await pipelined(this.#connection, (pipeline) => {
      for (const { jobId } of jobs) pipeline.hmget(keys.payout(toPayoutId(jobId)), 'state', 'notBefore');
    })) as (string | null)[][];
    const now = clock.wallNow();
    const late = jobs.flatMap(({ jobId, score }, index) => {
      const [state, notBefore] = records[index] ?? [];
      // A date that is no time counts as passed: the sender decides about it.
      const due = Math.max(now, Date.parse(notBefore ?? '') || 0);
      // BullMQ counts jobs of one millisecond in the lower bits.
      return state === 'queued' && score >= delayedScore(due + 1) ? [{ jobId, due }] : [];
    });
    if (late.length === 0) return [jobs.length, 0];
    await pipelined(this.#connection, (pipeline) => {
      // A job that is no longer delayed must not be added there again.
      for (const { jobId, due } of late) pipeline.zadd(delayed, 'XX', delayedScore(due), jobId);
    });
    return [jobs.length, late.length];
  }
}

const READ_BY_BULLMQ = ['data', 'opts', 'progress'] as const;

/** @returns field, value, … of what is not JSON, or of another kind than BullMQ and the workers take */
function repairedFields(jobId: string, [data, opts, progress]: readonly (string | null)[]): string[] {
  const own = JSON.stringify({ payoutId: toPayoutId(jobId) });
  return [
    ...(isObject(data) ? [] : ['data', own]),
    ...(isObject(opts) ? [] : ['opts', '{}']),
    ...(readJson(progress ?? '0') === undefined ? ['progress', '0'] : []),
  ];
}

function isObject(text: string | null | undefined): boolean {
  const value = readJson(text ?? '');
  return typeof value === 'object' && value !== null;
}
