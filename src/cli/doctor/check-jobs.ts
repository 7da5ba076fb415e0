import type { Clock } from '../../clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { StateWithJob } from '../../ledger/payout-ledger.js';
import { readJobBalance } from '../../queues/job-balance.js';
import type { PayoutQueues } from '../../queues/payout-queues.js';
import { formatCount } from '../../format.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** By the state of the payouts for which the jobs are. */
export const JOB_CHECK_NAMES: Readonly<Record<StateWithJob, string>> = {
  queued: 'withdraw jobs',
  in_progress: 'status jobs',
};

/** Counts do not fit for a moment while a payout or its job moves. */
const LOOKS = 5;
const LOOK_EVERY_MS = 200;

export interface JobCheckOptions {
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  readonly clock: Clock;
  /** Whether a worker is alive that re-creates missing jobs. */
  readonly hasWorker: boolean;
}

/** Whether there is a job in the queue for every payout that waits for one, by the counts of both. */
export async function checkJobs(
  state: StateWithJob,
  { connection, queues, clock, hasWorker }: JobCheckOptions,
): Promise<CheckResult> {
  const name = JOB_CHECK_NAMES[state];
  let found = await readJobBalance(connection, queues, state);
  for (let look = 1; look < LOOKS && found.lost > 0; look += 1) {
    await clock.sleep(LOOK_EVERY_MS);
    found = await readJobBalance(connection, queues, state);
  }
  const { payouts, jobs, lost } = found;
  if (lost <= 0) return ok(name, `${formatCount(jobs, 'job')} for ${formatCount(payouts, 'payout')}`);
  const detail = `${lost} of ${formatCount(payouts, 'payout')} have no job in the queue`;
  return hasWorker
    ? problem(name, detail, 'The worker repairs this within a minute; if it stays, read its log and look at Redis.')
    : warning(name, detail, 'Start `payouts worker`: it adds the missing jobs when it begins.');
}
