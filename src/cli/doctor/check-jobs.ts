import type { Clock } from '../../clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { StateWithJob } from '../../ledger/states.js';
import { readJobBalance } from '../../queues/job-balance.js';
import type { PayoutQueues } from '../../queues/payout-queues.js';
import { formatCount } from '../../format.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** By the state of the payouts that the jobs are for. */
export const JOB_CHECK_NAMES: Readonly<Record<StateWithJob, string>> = {
  queued: 'withdraw jobs',
  in_progress: 'status jobs',
};

/** The counts differ for a moment while a payout or its job moves. */
const ATTEMPTS = 5;
const RETRY_AFTER_MS = 200;

export interface JobCheckOptions {
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  readonly clock: Clock;
  /** Whether a worker is alive that re-creates missing jobs. */
  readonly hasWorker: boolean;
}

/** Whether every payout that needs a job has one in the queue, by the counts of both. */
export async function checkJobs(
  state: StateWithJob,
  { connection, queues, clock, hasWorker }: JobCheckOptions,
): Promise<CheckResult> {
  const name = JOB_CHECK_NAMES[state];
  let found = await readJobBalance(connection, queues, state);
  for (let attempt = 1; attempt < ATTEMPTS && found.lost > 0; attempt += 1) {
    await clock.sleep(RETRY_AFTER_MS);
    found = await readJobBalance(connection, queues, state);
  }
  const { payouts, jobs, lost } = found;
  if (lost <= 0) return ok(name, `${formatCount(jobs, 'job')} for ${formatCount(payouts, 'payout')}`);
  const detail = `${lost} of ${formatCount(payouts, 'payout')} have no job in the queue`;
  return hasWorker
    ? problem(
        name,
        detail,
        'The worker repairs this within a minute; if it persists, check the log of the worker and Redis.',
      )
    : warning(name, detail, 'Start `payouts worker`: it adds the missing jobs at the start.');
}
