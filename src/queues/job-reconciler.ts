import { isAborted } from '../base/clock.js';
import { ask } from '../ledger/ledger-connection.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { StateWithJob } from '../ledger/states.js';
import { readReadable } from '../ledger/payout-queries.js';
import { silentLogger, type Logger } from '../base/logger.js';
import type { AccountQueues } from './account-queues.js';
import type { OutboxRelay } from './outbox-relay.js';
import {
  type CompactMap,
  type JobPosition,
  JobRecords,
  type JobSuspect,
  readJobPositions,
  readSortedSet,
} from './job-records.js';
import { toJobId, type PayoutQueues } from './payout-queues.js';

/** Payouts per step. Each of its two scripts takes Redis 1.5 ms. */
const STEP = 250;
const REPAIRED_TOGETHER = 50;

interface Candidate {
  readonly payoutId: string;
  readonly jobId: string;
}

interface Check {
  readonly state: StateWithJob;
  readonly positions: CompactMap<JobPosition>;
  readonly outboxed: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/**
 * Compares the ledger with the queues. A payout has its job if that is in one of the queue's structures, and its hash
 * exists and is not finished. Anything else is an orphan, which is removed before the job is added again.
 */
export class JobReconciler {
  readonly #ledger: PayoutLedger;
  readonly #queues: PayoutQueues;
  readonly #relay: OutboxRelay;
  readonly #records: JobRecords;
  readonly #logger: Logger;

  constructor(ledger: PayoutLedger, { queues, relay }: AccountQueues, logger: Logger = silentLogger) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#relay = relay;
    this.#records = new JobRecords(ledger.connection.redis);
    this.#logger = logger;
  }

  /**
   * Checks every payout of a state and re-creates missing jobs. No command takes longer than some milliseconds, however
   * long the queue is. Payouts and jobs may move meanwhile. So it checks only payouts that were already in the state
   * and are not in the outbox: their jobs were queued before the structures are read.
   * @param signal - ends it between two steps
   * @returns the number of missing jobs
   */
  async reconcile(state: StateWithJob, signal: AbortSignal): Promise<number> {
    // Includes entries dated ahead by a clock that was put back, because the check skips everything in the outbox.
    await this.#relay.relayOutbox(Number.MAX_SAFE_INTEGER, signal);
    const { redis, keys } = this.#ledger.connection;
    const index = keys.state(state);
    const [, last] = await ask(redis.zrange(index, '0', '0', 'REV', 'WITHSCORES'));
    if (last === undefined) return 0;
    const outboxed = await this.#readOutboxed(signal);
    const positions = await readJobPositions(redis, this.#queues.queueOf(state), signal);
    const check: Check = { state, positions, outboxed, signal };
    let recreated = 0;
    for (let after = '-inf'; !isAborted(signal);) {
      const page = await ask(redis.zrange(index, after, last, 'BYSCORE', 'LIMIT', 0, STEP, 'WITHSCORES'));
      recreated += await this.#checkPage(
        page.filter((_, position) => position % 2 === 0),
        check,
      );
      if (page.length < 2 * STEP) break;
      after = `(${page.at(-1) ?? ''}`;
    }
    return recreated;
  }

  async #readOutboxed(signal: AbortSignal): Promise<Set<string>> {
    const { redis, keys } = this.#ledger.connection;
    const members = new Set<string>();
    for await (const { entries } of readSortedSet(redis, keys.outbox, signal)) {
      for (const member of entries) members.add(member);
    }
    return members;
  }

  async #checkPage(payoutIds: readonly string[], check: Check): Promise<number> {
    const { state, positions, outboxed, signal } = check;
    const candidates = await this.#findCandidates(
      state,
      payoutIds.filter((payoutId) => !outboxed.has(`${state} ${payoutId}`)),
    );
    const kinds = await this.#records.readKinds(
      this.#queues.queueOf(state),
      candidates.map(({ jobId }) => jobId),
    );
    const suspects = candidates.filter(
      ({ jobId }, index) => kinds[index] !== 'live' || positions.get(jobId) === undefined,
    );
    let recreated = 0;
    for (let start = 0; start < suspects.length && !isAborted(signal); start += REPAIRED_TOGETHER) {
      recreated += await this.#recreate(suspects.slice(start, start + REPAIRED_TOGETHER), check);
    }
    return recreated;
  }

  /** Does not read whole records, because almost all are well. */
  async #findCandidates(state: StateWithJob, payoutIds: readonly string[]): Promise<Candidate[]> {
    const jobIds = await this.#records.readJobIds(this.#ledger.connection.keys, state, payoutIds);
    return payoutIds.flatMap((payoutId, index) => {
      const jobId = jobIds[index];
      return jobId === undefined ? [] : [{ payoutId, jobId }];
    });
  }

  async #recreate(suspects: readonly Candidate[], { state, positions }: Check): Promise<number> {
    // A payout leaves its state before its job ends, so a payout still in the state has lost its job.
    const payouts = await readReadable(
      this.#ledger.connection,
      suspects.map(({ payoutId }) => payoutId),
      (error, payoutId) => {
        this.#logger.error(
          { payoutId, error: error.message },
          'a payout cannot be read; its lost job is not re-created',
        );
      },
    );
    const suspected = new Set(suspects.map(({ jobId }) => jobId));
    const waiting = payouts.filter((payout) => payout.state === state && suspected.has(toJobId(payout)));
    const outcomes = await this.#records.clearOrphans(
      this.#queues.queueOf(state),
      waiting.map((payout): JobSuspect => ({ jobId: toJobId(payout), position: positions.get(toJobId(payout)) })),
    );
    await this.#relay.addJobs(
      state,
      waiting.filter((_, index) => outcomes[index] === 'cleared'),
    );
    return outcomes.filter((outcome) => outcome !== 'kept').length;
  }
}
