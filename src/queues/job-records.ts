import { readFileSync } from 'node:fs';
import type { Queue } from 'bullmq';
import type { LedgerKeys } from '../ledger/keys.js';
import { ask } from '../ledger/ledger-connection.js';
import type { PayoutState } from '../ledger/states.js';
import type { RedisClient } from '../redis.js';
import type { JobPlace } from './job-places.js';
import { toJobId } from './payout-queues.js';

/**
 * `live` can still run, `dead` is finished or incomplete, `none` has no hash. It does not say whether the job is in its
 * queue.
 */
export type JobRecordKind = (typeof RECORD_KINDS)[number];

export interface JobSuspect {
  readonly jobId: string;
  readonly place: JobPlace | undefined;
}

/**
 * The outcome for a suspect: `kept` is well or running, `cleared` has left nothing behind, `put_back` is running and is
 * active again.
 */
export type SuspectOutcome = (typeof OUTCOMES)[number];

const RECORD_KINDS = ['live', 'dead', 'none'] as const;
const OUTCOMES = ['kept', 'cleared', 'put_back'] as const;

const READ_REQUEUE_COUNTS = 'payouts:read-requeue-counts';
const FIND_DEAD_JOBS = 'payouts:find-dead-jobs';
const CLEAR_ORPHAN_JOB = 'payouts:clear-orphan-job';
const STRUCTURES = ['wait', 'paused', 'active', 'prioritized', 'delayed', 'completed', 'failed'] as const;

/** Entries of a waiting list searched from either end: 1,000 take 0.05 ms, all of 100,000 would take 4 ms. */
const SEARCHED_ENTRIES = 1_000;
/** Suspects cleared at a time, so that Redis serves others after some 2 ms. */
const BURST = 10;

export class JobRecords {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    if (READ_REQUEUE_COUNTS in redis) return;
    redis.defineCommand(READ_REQUEUE_COUNTS, { lua: readScript('read-requeue-counts') });
    redis.defineCommand(FIND_DEAD_JOBS, { lua: readScript('find-dead-jobs') });
    redis.defineCommand(CLEAR_ORPHAN_JOB, { numberOfKeys: STRUCTURES.length + 2, lua: readScript('clear-orphan-job') });
  }

  /**
   * One command for some hundreds at most.
   * @returns one job id per payout; undefined if it is not in the state
   */
  async readJobIds(
    keys: LedgerKeys,
    state: PayoutState,
    payoutIds: readonly string[],
  ): Promise<(string | undefined)[]> {
    if (payoutIds.length === 0) return [];
    const records = payoutIds.map((payoutId) => keys.payout(payoutId));
    const counts = (await this.#run(READ_REQUEUE_COUNTS, [records.length, ...records, state])) as number[];
    return payoutIds.map((payoutId, index) => {
      const requeueCount = counts[index] ?? -1;
      return requeueCount < 0 ? undefined : toJobId({ payoutId, requeueCount });
    });
  }

  /** One command for some hundreds at most. */
  async readKinds(queue: Queue, jobIds: readonly string[]): Promise<JobRecordKind[]> {
    if (jobIds.length === 0) return [];
    const keys = jobIds.map((jobId) => queue.toKey(jobId));
    const kinds = (await this.#run(FIND_DEAD_JOBS, [keys.length, ...keys])) as number[];
    return kinds.map((kind) => pick(RECORD_KINDS, kind));
  }

  /**
   * Removes the remains of jobs that no worker will ever run. The removing step checks each once more.
   * @returns one outcome per suspect, in order
   */
  async clearOrphans(queue: Queue, suspects: readonly JobSuspect[]): Promise<SuspectOutcome[]> {
    const outcomes: SuspectOutcome[] = [];
    for (let start = 0; start < suspects.length; start += BURST) {
      const burst = suspects.slice(start, start + BURST);
      outcomes.push(...(await Promise.all(burst.map(async (suspect) => this.#clearOrphan(queue, suspect)))));
    }
    return outcomes;
  }

  async #clearOrphan(queue: Queue, { jobId, place }: JobSuspect): Promise<SuspectOutcome> {
    const keys = [jobId, `${jobId}:lock`, ...STRUCTURES].map((name) => queue.toKey(name));
    const seen = [place?.structure ?? '', place?.near === 'tail' ? -1 : 1];
    return pick(OUTCOMES, (await this.#run(CLEAR_ORPHAN_JOB, [...keys, jobId, SEARCHED_ENTRIES, ...seen])) as number);
  }

  async #run(script: string, args: readonly (string | number)[]): Promise<unknown> {
    const commands = this.#redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
    return ask(commands[script]?.(...args) ?? Promise.reject(new Error(`${script} is not defined`)));
  }
}

function pick<Meaning>(meanings: readonly Meaning[], code: number): Meaning {
  const meaning = meanings[code];
  if (meaning === undefined) throw new Error(`A script of the queues returned ${code}, which has no meaning`);
  return meaning;
}

function readScript(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8');
}
