import { every } from '../base/clock.js';
import { STATES_WITH_JOB, type StateWithJob } from '../ledger/states.js';
import { readJobBalance } from '../queues/job-balance.js';
import type { JobReconciler } from '../queues/job-reconciler.js';
import { StuckJobs } from '../queues/stuck-jobs.js';
import type { AccountRuntime } from './account-runtime.js';

type Needed = Pick<AccountRuntime, 'clock' | 'ledger' | 'queues' | 'observer' | 'logger'>;
type Jobs = Pick<JobReconciler, 'reconcile'>;

/** Two looks and a check end within a minute of any damage. */
const LOOK_EVERY_MS = 20_000;
const CHECK_EVERY_MS = 60 * 60 * 1_000;

/**
 * Keeps a queue job that can run for every payout that waits for one. It checks all payouts at the start, every hour,
 * and after their count differs from the jobs'. Runs until the signal is aborted.
 */
export async function restoreLostJobs(runtime: Needed, reconciler: Jobs, signal: AbortSignal): Promise<void> {
  // Separate, because a check of a long queue is slow.
  await Promise.all(STATES_WITH_JOB.map(async (state) => restoreJobs(state, runtime, reconciler, signal)));
}

async function restoreJobs(state: StateWithJob, runtime: Needed, reconciler: Jobs, signal: AbortSignal): Promise<void> {
  const { clock, ledger, queues, observer, logger } = runtime;
  const { connection } = ledger;
  const alarm = new LostJobAlarm();
  const stuck = new StuckJobs(connection, logger);
  const queue = queues.queueOf(state);
  let checkedAt: number | undefined;
  const repairStuck = async (): Promise<void> => {
    const released = await stuck.repairUnreadable(queue);
    // The delays of polls are the worker's own, and short.
    const restored = state === 'queued' ? await stuck.restoreTimes(queue, signal) : 0;
    if (released + restored > 0) observer.jobsRecreated(state, released + restored);
  };
  const look = async (): Promise<void> => {
    const { lost, payouts, jobs } = await readJobBalance(connection, queues, state);
    if (payouts + jobs > 0) await repairStuck();
    const isOverdue = checkedAt === undefined || clock.now() - checkedAt >= CHECK_EVERY_MS;
    if (!alarm.isDue(lost) && !isOverdue) return;
    const recreated = await reconciler.reconcile(state, signal);
    if (recreated > 0) {
      logger.warn({ state, count: recreated }, 're-created missing jobs');
      observer.jobsRecreated(state, recreated);
    }
    alarm.noteCheck(recreated, (await readJobBalance(connection, queues, state)).lost);
    checkedAt = clock.now();
  };
  const onError = ({ message }: Error): void => {
    logger.warn({ state, error: message }, 'the check for missing jobs failed, will try again');
  };
  await every(LOOK_EVERY_MS, look, { clock, signal, onError });
}

/**
 * Decides from counts whether jobs are lost. A count may be briefly wrong, so it takes two looks in a row. It may also
 * stay wrong with nothing to repair: the job of a payout resolved by hand waits for its turn. So the difference after
 * an exact check counts as normal.
 */
export class LostJobAlarm {
  #normal = 0;
  #suspected: number | undefined;

  /**
   * Records a look.
   * @param lost - payouts minus jobs, by the counts
   * @returns whether an exact check is due
   */
  isDue(lost: number): boolean {
    // A surplus of payouts that cannot be repaired is normal while it lasts.
    if (this.#normal > 0) this.#normal = Math.max(0, Math.min(this.#normal, lost));
    const before = this.#suspected;
    this.#suspected = lost > this.#normal ? Math.min(lost, before ?? lost) : undefined;
    return before !== undefined && this.#suspected !== undefined;
  }

  /**
   * Records an exact check.
   * @param recreated - jobs that it re-created
   * @param lost - by the counts, after it
   */
  noteCheck(recreated: number, lost: number): void {
    const unexplained = recreated === 0 ? this.#suspected : undefined;
    // Otherwise not above zero: that would be damage that came during the check.
    this.#normal = unexplained ?? Math.min(0, lost);
    this.#suspected = undefined;
  }
}
