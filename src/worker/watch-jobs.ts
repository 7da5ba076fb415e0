import { isAborted, type Clock } from '../clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { STATES_WITH_JOB, type StateWithJob } from '../ledger/states.js';
import type { Logger } from '../logger.js';
import { readJobBalance } from '../queues/job-balance.js';
import type { JobReconciler } from '../queues/job-reconciler.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { LostJobAlarm } from './lost-job-alarm.js';
import type { WorkerObserver } from './sender/worker-observer.js';

export interface WatchJobsOptions {
  readonly clock: Clock;
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  readonly reconciler: Pick<JobReconciler, 'reconcile'>;
  readonly observer: Pick<WorkerObserver, 'jobsRecreated'>;
  readonly logger: Logger;
}

/** Two looks and a check end within a minute of any damage. */
const LOOK_EVERY_MS = 20_000;
const CHECK_EVERY_MS = 60 * 60 * 1_000;

/**
 * Keeps a job in the queues for every payout that waits for one, whatever happens to the queues in Redis: all payouts are
 * checked at the start and every hour, and as soon as the counts of payouts and jobs no longer fit. Runs until the signal
 * is aborted.
 */
export async function watchJobs(options: WatchJobsOptions, signal: AbortSignal): Promise<void> {
  // Apart, since a check of a long queue takes its time.
  await Promise.all(STATES_WITH_JOB.map(async (state) => watchState(state, options, signal)));
}

async function watchState(state: StateWithJob, options: WatchJobsOptions, signal: AbortSignal): Promise<void> {
  const { clock, connection, queues, logger } = options;
  const alarm = new LostJobAlarm();
  let checkedAt: number | undefined;
  while (!isAborted(signal)) {
    try {
      const { lost } = await readJobBalance(connection, queues, state);
      const isOverdue = checkedAt === undefined || clock.now() - checkedAt >= CHECK_EVERY_MS;
      if (alarm.isDue(lost) || isOverdue) {
        const recreated = await checkJobs(state, options, signal);
        alarm.noteCheck(recreated, (await readJobBalance(connection, queues, state)).lost);
        checkedAt = clock.now();
      }
    } catch (error) {
      logger.warn({ state, error: (error as Error).message }, 'the check for missing jobs failed, will try again');
    }
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

async function checkJobs(
  state: StateWithJob,
  { reconciler, observer, logger }: WatchJobsOptions,
  signal: AbortSignal,
): Promise<number> {
  const count = await reconciler.reconcile(state, signal);
  if (count > 0) {
    logger.warn({ state, count }, 're-created missing jobs');
    observer.jobsRecreated(state, count);
  }
  return count;
}
