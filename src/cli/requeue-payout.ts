import type { Payout } from '../ledger/payout.js';
import type { PayoutState } from '../ledger/states.js';
import type { AccountAccess } from '../producer/account-access.js';
import { addWithdrawJobs } from '../producer/add-withdraw-jobs.js';
import type { Person } from './person.js';

/**
 * Puts a payout that was not paid back into the queue, with a new job.
 * @throws NotFoundError, RedisUnavailableError; ConflictError when it is not in the state `from`
 */
export async function requeuePayout(
  account: AccountAccess,
  payoutId: string,
  from: PayoutState,
  person: Person,
): Promise<Payout> {
  const { ledger } = account;
  await ledger.change({ payoutId, from, to: 'queued', ...person });
  const payout = await ledger.get(payoutId);
  if (payout === undefined) throw new Error(`Payout ${payoutId} vanished from the ledger after it was put back`);
  await addWithdrawJobs(account, { fresh: [payout], waiting: [] });
  return payout;
}
