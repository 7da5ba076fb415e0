import { formatCount, formatDuration } from '../../format.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { countDueJobs } from '../../queues/count-due-jobs.js';
import type { PayoutQueues } from '../../queues/payout-queues.js';
import { ok, warning, type CheckResult } from './check-result.js';

/** After an outage some wait for their turn; more than this many seconds of them are more than the rate allows. */
const TOLERATED_S = 60;

export interface PollCheckOptions {
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  /** Polls a second that the account may make. */
  readonly pollRate: number;
}

/** Whether the rate of status polls is enough for the payouts in progress: those that are due wait for their turn. */
export async function checkPolls({ connection, queues, pollRate }: PollCheckOptions): Promise<CheckResult> {
  const name = 'status polls';
  const due = await countDueJobs(connection, queues.transactionstatus);
  const seconds = due / pollRate;
  if (seconds <= TOLERATED_S) return ok(name, `${formatCount(due, 'poll')} due`);
  return warning(
    name,
    `${formatCount(due, 'poll')} due, which take ${formatDuration(seconds * 1_000)} at STATUS_POLL_RATE=${pollRate}`,
    'Raise STATUS_POLL_RATE or STATUS_POLL_MAX_MS, if no worker was stopped for long: payouts are found completed late.',
  );
}
